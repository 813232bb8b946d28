/** The answer to a device authorization request (RFC 8628 section 3.2). */
export interface DeviceCodes {
    device_code: string;
    user_code: string;
    verification_uri: string;
    verification_uri_complete: string;
    /** Seconds. */
    expires_in: number;
    /** Seconds between two polls. */
    interval: number;
}
export interface DeviceToken {
    access_token: string;
    scope: string;
}
/** Asks for a device code. @throws KeywayError */
export declare function requestDeviceCodes(url: string, { scopes, deviceName }: {
    scopes: readonly string[];
    deviceName: string;
}): Promise<DeviceCodes>;
/**
 * Polls until a person has approved. Waits out network errors and a restart of the service.
 *
 * @throws KeywayError `refused` when the person denied, `timeout` when the code expired; `refused` or `not_found` when
 *   the service refused the poll
 */
export declare function awaitDecision(url: string, codes: DeviceCodes): Promise<DeviceToken>;
