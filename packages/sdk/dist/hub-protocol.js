/** The subprotocol that a hub client offers and the hub selects. */
export const HUB_PROTOCOL = 'keyway.hub.v1';
/** A browser cannot set headers on a WebSocket: it offers `bearer.<token>` as a second subprotocol. */
export const HUB_BEARER_PREFIX = 'bearer.';
/** A broken connection is resumed by offering `resume.<resume_token>.<last seq>` as well. */
export const HUB_RESUME_PREFIX = 'resume.';
/** Largest text frame either side may send, in bytes. */
export const HUB_MAX_FRAME_BYTES = 64 * 1024;
/**
 * A message whose id has this prefix is a request: each receiver sends one answer, with `reply_to` and an `Answer` as
 * data.
 */
export const REQUEST_ID_PREFIX = 'request.';
