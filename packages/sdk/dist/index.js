export { Agent } from './agent.js';
export { Keyway } from './client.js';
export { KeywayError } from './errors.js';
export * from './protocol.js';
export { memoryTokenStore } from './token-store.js';
export { verifyAccessToken, verifyAgentToken } from './verify.js';
