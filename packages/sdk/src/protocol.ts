/** Definitions of the wire protocol, shared by server and clients: names, numbers, patterns and types without logic. */
export * from './api-objects.ts'
export * from './close-codes.ts'
export * from './error-codes.ts'
export * from './hub-protocol.ts'
export * from './scopes.ts'

/** An API key: `svc_` and 32 characters of `0-9A-Za-z`. */
export const API_KEY_PATTERN = /^svc_[0-9A-Za-z]{32}$/
