/**
 * What goes over the wire: the server and every client read the same lists. Nothing here runs; it is names, numbers
 * and types.
 */
export * from './api-key-pattern.js';
export * from './api-objects.js';
export * from './close-codes.js';
export * from './error-codes.js';
export * from './hub-protocol.js';
export * from './scopes.js';
