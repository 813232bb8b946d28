import { createMutex } from './mutex.ts'

/** The tokens of a signed-in client. */
export interface StoredTokens {
  access: string
  refresh: string
  sessionId: string
  /** The Idempotency-Key of a refresh whose answer has not arrived yet. */
  refreshKey?: string
}

/**
 * Storage for a client's tokens, which several clients (tabs, processes) may share: `memoryTokenStore`,
 * `browserTokenStore`, `cookieTokenStores`, `fileTokenStore` of `@keyway/sdk/node`, or one of your own, for example in
 * the system's keychain.
 */
export interface TokenStore {
  get(): Promise<StoredTokens | undefined> | StoredTokens | undefined
  set(tokens: StoredTokens): Promise<void> | void
  delete(): Promise<void> | void
  /**
   * Runs `work` while no other client of this storage runs its own: refresh tokens rotate, and two clients that use the
   * same one would end the session. Clients read, refresh and write within `work`. If a store lacks `exclusive`, the
   * client uses the Web Locks of the platform, if it has them.
   */
  exclusive?<Answer>(work: () => Promise<Answer>): Promise<Answer>
}

/** A store in memory, the default. */
export function memoryTokenStore(tokens?: StoredTokens): TokenStore {
  let current = tokens
  return {
    get: () => current,
    set: next => {
      current = next
    },
    delete: () => {
      current = undefined
    },
    exclusive: createMutex(),
  }
}

/** Parses tokens that `JSON.stringify` wrote; undefined for any other text. */
export function parseTokens(text: string): StoredTokens | undefined {
  try {
    const { access, refresh, sessionId, refreshKey } = JSON.parse(text) as Partial<StoredTokens>
    const isComplete = [access, refresh, sessionId].every(value => typeof value === 'string' && value !== '')
    if (!isComplete || !['string', 'undefined'].includes(typeof refreshKey)) return undefined
    const tokens = { access: access!, refresh: refresh!, sessionId: sessionId! }
    return refreshKey === undefined ? tokens : { ...tokens, refreshKey }
  } catch {
    return undefined
  }
}
