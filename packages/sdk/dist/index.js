export { Agent } from './agent.js';
export { browserTokenStore } from './browser-token-store.js';
export { Keyway } from './client.js';
export { cookieTokenStores } from './cookie-token-stores.js';
export { KeywayError } from './errors.js';
export * from './protocol.js';
export { memoryTokenStore } from './token-store.js';
export { verifyAccessToken, verifyAgentToken } from './verify.js';
