/** What a signed-in client stores between calls. */
export interface StoredTokens {
  access: string
  refresh: string
  sessionId: string
  /** The Idempotency-Key of a refresh whose answer has not arrived yet. */
  refreshKey?: string
}

/**
 * Where a client stores its tokens: for example a file with mode 0600, the system's keychain, or a browser's storage.
 * Several clients (tabs) may share one.
 */
export interface TokenStore {
  get(): Promise<StoredTokens | undefined> | StoredTokens | undefined
  set(tokens: StoredTokens): Promise<void> | void
  delete(): Promise<void> | void
}

/** In memory; the default. */
export function memoryTokenStore(tokens?: StoredTokens): TokenStore {
  let held = tokens
  return {
    get: () => held,
    set: next => {
      held = next
    },
    delete: () => {
      held = undefined
    },
  }
}
