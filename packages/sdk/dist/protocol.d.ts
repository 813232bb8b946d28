/** Definitions of the wire protocol, shared by server and clients: names, numbers and types without logic. */
export * from './api-key-pattern.js';
export * from './api-objects.js';
export * from './close-codes.js';
export * from './error-codes.js';
export * from './hub-protocol.js';
export * from './scopes.js';
