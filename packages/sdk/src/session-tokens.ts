import { randomId } from './environment.ts'
import { KeywayError } from './errors.ts'
import type { SessionAnswer } from './protocol.ts'
import type { StoredTokens, TokenStore } from './token-store.ts'

export interface SessionTokensOptions {
  origin: string
  store: TokenStore
  /** `POST /auth/refresh`, retried with the same Idempotency-Key. */
  refresh(refreshToken: string, idempotencyKey: string): Promise<SessionAnswer>
}

interface WebLocks {
  request<Answer>(name: string, callback: () => Promise<Answer>): Promise<Answer>
}

/** A session's tokens, refreshed one at a time per process and, with Web Locks, across tabs. */
export class SessionTokens {
  #options: SessionTokensOptions
  #flight: Promise<SessionAnswer | undefined> | undefined

  constructor(options: SessionTokensOptions) {
    this.#options = options
  }

  async access(): Promise<string | undefined> {
    return (await this.#options.store.get())?.access
  }

  async keep(answer: SessionAnswer): Promise<void> {
    await this.#options.store.set(stored(answer))
  }

  async forget(): Promise<void> {
    await this.#options.store.delete()
  }

  async refreshToken(): Promise<string | undefined> {
    return (await this.#options.store.get())?.refresh
  }

  /**
   * Refreshes the tokens unless `refused`, the rejected access token, was replaced meanwhile.
   *
   * @returns the server's answer, or undefined when another tab had refreshed meanwhile
   */
  refresh(refused?: string): Promise<SessionAnswer | undefined> {
    this.#flight ??= this.#alone(() => this.#renew(refused)).finally(() => {
      this.#flight = undefined
    })
    return this.#flight
  }

  async #renew(refused: string | undefined): Promise<SessionAnswer | undefined> {
    const { store, refresh } = this.#options
    const tokens = await store.get()
    if (!tokens) throw notSignedIn()
    if (refused !== undefined && tokens.access !== refused) return undefined
    // Stored before it is used: if this process dies before the response, the next one retries with the same key and
    // gets the same successor, instead of triggering reuse detection.
    const refreshKey = tokens.refreshKey ?? randomId()
    await store.set({ ...tokens, refreshKey })
    try {
      const answer = await refresh(tokens.refresh, refreshKey)
      await this.keep(answer)
      return answer
    } catch (error) {
      if (error instanceof KeywayError && error.status === 401) await this.forget()
      throw error
    }
  }

  #alone<Answer>(work: () => Promise<Answer>): Promise<Answer> {
    const locks = (globalThis as { navigator?: { locks?: WebLocks } }).navigator?.locks
    return locks ? locks.request(`keyway-refresh ${this.#options.origin}`, work) : work()
  }
}

export function notSignedIn(): KeywayError {
  const advice = 'Not signed in: call verifyMagicLink first, or pass apiKey.'
  return new KeywayError('authentication_required', advice, { status: 401 })
}

function stored({ access_token, refresh_token, session_id }: SessionAnswer): StoredTokens {
  return { access: access_token, refresh: refresh_token, sessionId: session_id }
}
