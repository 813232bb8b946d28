/** The subprotocol that a hub client offers and the hub selects. */
export const HUB_PROTOCOL = 'keyway.hub.v1';
/** A browser cannot set headers on a WebSocket: it offers `bearer.<token>` as a second subprotocol. */
export const HUB_BEARER_PREFIX = 'bearer.';
/** Largest text frame either side may send, in bytes. */
export const HUB_MAX_FRAME_BYTES = 64 * 1024;
