/** Why a connection failed; `network` where the platform does not say, as in browsers. */
export type NetworkCause = 'dns' | 'refused' | 'tls' | 'timeout' | 'network';
/** The end of an error message, after the service's address. */
export declare const NETWORK_ADVICE: Record<NetworkCause, string>;
/**
 * The cause by the first known error code in the chain of causes, since platforms wrap the error of the socket;
 * `network` if there is none.
 */
export declare function networkCauseOf(error: unknown, depth?: number): NetworkCause;
