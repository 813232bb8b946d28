/** Definitions of the wire protocol, shared by server and clients: names, numbers, patterns and types without logic. */
export * from './api-objects.js';
export * from './close-codes.js';
export * from './error-codes.js';
export * from './hub-protocol.js';
export * from './scopes.js';
/** An API key: `svc_` and 32 characters of `0-9A-Za-z`. */
export const API_KEY_PATTERN = /^svc_[0-9A-Za-z]{32}$/;
