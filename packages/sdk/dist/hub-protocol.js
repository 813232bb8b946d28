/** The subprotocol that a hub client offers and the hub selects. */
export const HUB_PROTOCOL = 'keyway.hub.v1';
/** A browser cannot set headers on a WebSocket: it offers `bearer.<token>` as a second subprotocol. */
export const HUB_BEARER_PREFIX = 'bearer.';
/** Largest text frame either side may send, in bytes. */
export const HUB_MAX_FRAME_BYTES = 64 * 1024;
/** The server pings this often. */
export const HUB_HEARTBEAT_SECONDS = 25;
/** A connection that was silent for this long is dropped. */
export const HUB_SILENCE_SECONDS = 60;
/** An agent hears `token_expiring` this long before its token ends. */
export const HUB_EXPIRY_NOTICE_SECONDS = 60;
