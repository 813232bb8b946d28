export { Agent } from './agent.ts'
export type {
  AgentDisconnected,
  AgentEvents,
  AgentMessage,
  AgentOptions,
  AgentReady,
  AgentRequest,
  PresenceEvent,
  RequestHandler,
  SendOptions,
} from './agent-options.ts'
export type { ProvidedToken } from './agent-token-source.ts'
export type { BrowserTokenStore, BrowserTokenStoreOptions } from './browser-token-store.ts'
export { browserTokenStore } from './browser-token-store.ts'
export type { ApiKeyList, ChangeApiKey, CreateApiKey, Metadata } from './calls/api-keys.ts'
export type { Charge, FollowOptions, VerifyKeyOptions } from './calls/apps.ts'
export type { PageOptions } from './calls/paging.ts'
export type { UsageRange } from './calls/usage.ts'
export type { KeywayOptions, VerifyMagicLink } from './client.ts'
export { Keyway } from './client.ts'
export type { CookieTokenStore, CookieTokenStoresOptions } from './cookie-token-stores.ts'
export { cookieTokenStores } from './cookie-token-stores.ts'
export type { ClientErrorCode } from './errors.ts'
export { KeywayError } from './errors.ts'
export type { WebSocketConstructor, WebSocketLike } from './hub-connection.ts'
export type { NetworkCause } from './network-cause.ts'
export type { Delivery } from './pending-sends.ts'
export * from './protocol.ts'
export type { RequestOptions } from './requests.ts'
export type { StoredTokens, TokenStore } from './token-store.ts'
export { memoryTokenStore } from './token-store.ts'
export type { AccessTokenClaims, AgentTokenClaims, VerifyOptions } from './verify.ts'
export { verifyAccessToken, verifyAgentToken } from './verify.ts'
