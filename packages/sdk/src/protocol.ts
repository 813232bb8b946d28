/**
 * What goes over the wire: the server and every client read the same lists. Nothing here runs; it is names, numbers
 * and types.
 */
export * from './api-key-pattern.ts'
export * from './api-objects.ts'
export * from './close-codes.ts'
export * from './error-codes.ts'
export * from './hub-protocol.ts'
export * from './scopes.ts'
