/** Why a connection failed; `network` where the platform does not say, as in browsers. */
export type NetworkCause = 'dns' | 'refused' | 'tls' | 'timeout' | 'network';
/** Advice for each cause, to follow the service's address in a message. */
export declare const NETWORK_ADVICE: Record<NetworkCause, string>;
/** Looks through the chain of causes: platforms wrap the error of the socket. */
export declare function networkCauseOf(error: unknown, depth?: number): NetworkCause;
