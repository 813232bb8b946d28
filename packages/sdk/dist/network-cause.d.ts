/** Why a connection failed; `network` where the platform does not say, as in browsers. */
export type NetworkCause = 'dns' | 'refused' | 'tls' | 'timeout' | 'network';
/** What an error message says about each cause, after the service's address. */
export declare const NETWORK_ADVICE: Record<NetworkCause, string>;
/** Looks through the chain of causes: platforms wrap the error of the socket. */
export declare function networkCauseOf(error: unknown, depth?: number): NetworkCause;
