/** Definitions of the wire protocol, shared by server and clients: names, numbers and types without logic. */
export * from './api-key-pattern.ts'
export * from './api-objects.ts'
export * from './close-codes.ts'
export * from './error-codes.ts'
export * from './hub-protocol.ts'
export * from './scopes.ts'
