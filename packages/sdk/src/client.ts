import { AccountCalls } from './calls/account.ts'
import { AgentCalls } from './calls/agents.ts'
import { ApiKeyCalls } from './calls/api-keys.ts'
import { AppCalls } from './calls/apps.ts'
import { SessionCalls } from './calls/sessions.ts'
import { type UsageRange, usageQuery } from './calls/usage.ts'
import type { SdkClock } from './clock.ts'
import { systemClock } from './clock.ts'
import { environment, serviceOrigin } from './environment.ts'
import type {
  AgentTokenAnswer,
  SendMagicLinkAnswer,
  SessionAnswer,
  SignInAnswer,
  UsageAnswer,
  UserObject,
} from './protocol.ts'
import { SessionTokens } from './session-tokens.ts'
import { memoryTokenStore, type TokenStore } from './token-store.ts'
import { Transport } from './transport.ts'

export interface KeywayOptions {
  /** The service's public URL. Default: the environment variable `KEYWAY_URL`. */
  url?: string | undefined
  /** Calls with this key instead of a session. Default: `KEYWAY_API_KEY`, unless `tokens` or `app` is given. */
  apiKey?: string | undefined
  /** The store of the session's tokens; see `TokenStore`. Default: in memory. */
  tokens?: TokenStore | undefined
  /** Id and secret of an app, for its calls (`apps`). */
  app?: { id: string; secret: string } | undefined
  /** Maximum retries of calls that are safe to retry. Default 4. */
  maxRetries?: number | undefined
  /** Longest `Retry-After` to wait for, in seconds; beyond it the error is thrown. Default 30. */
  longestWaitSeconds?: number | undefined
  /** Timeout of each attempt in milliseconds. Default 15000. */
  timeoutMs?: number | undefined
  fetch?: typeof fetch | undefined
  /** @internal For tests. */
  clock?: SdkClock | undefined
}

/** Redeems a magic link by its token, or by the code from the mail with the `login_id` of the request. */
export type VerifyMagicLink =
  | { token: string; email: string; app_id?: string }
  | { login_id: string; code: string; email: string; app_id?: string }

/**
 * Client of the HTTP API for users and apps, without the calls of administrators. Errors are `KeywayError`; idempotent
 * calls are retried, honouring `Retry-After`; an expired access token is refreshed automatically.
 *
 *     const keyway = new Keyway({ url: 'https://keyway.example.com' })
 *     const { login_id } = await keyway.sendMagicLink({ email })
 *     await keyway.verifyMagicLink({ login_id, code, email })
 *     const { key } = await keyway.apiKeys.create({ name: 'build robot' })
 */
export class Keyway {
  readonly apiKeys: ApiKeyCalls
  readonly sessions: SessionCalls
  readonly account: AccountCalls
  readonly agents: AgentCalls
  /** Needs the option `app`. */
  readonly apps: AppCalls
  #transport: Transport
  #tokens: SessionTokens

  constructor(options: KeywayOptions = {}) {
    const { maxRetries = 4, longestWaitSeconds = 30, timeoutMs = 15_000, clock = systemClock } = options
    const origin = serviceOrigin(options.url)
    const environmentKey = options.tokens || options.app ? undefined : environment('KEYWAY_API_KEY')
    this.#tokens = new SessionTokens({
      origin,
      store: options.tokens ?? memoryTokenStore(),
      refresh: (refresh_token, key) => this.#refresh(refresh_token, key),
    })
    this.#transport = new Transport({
      origin,
      apiKey: options.apiKey ?? environmentKey,
      app: options.app,
      tokens: this.#tokens,
      fetch: options.fetch ?? fetch,
      retry: { maxRetries, longestWaitSeconds, timeoutMs, clock },
    })
    this.apiKeys = new ApiKeyCalls(this.#transport)
    this.sessions = new SessionCalls(this.#transport)
    this.account = new AccountCalls(this.#transport)
    this.agents = new AgentCalls(this.#transport)
    this.apps = new AppCalls(this.#transport)
  }

  /** Sends a sign-in mail; the answer is the same whether or not the address has an account. */
  sendMagicLink(body: { email: string; app_id?: string; locale?: string }): Promise<SendMagicLinkAnswer> {
    return this.#transport.call('POST', '/auth/send-magic-link', { body, as: 'none' })
  }

  /** Signs in and stores the tokens. Not retried: a link works once. */
  async verifyMagicLink(body: VerifyMagicLink): Promise<SignInAnswer> {
    const path = '/auth/verify-magic-link'
    const answer = await this.#transport.call<SignInAnswer>('POST', path, { body, as: 'none' })
    await this.#tokens.storeSignIn(answer)
    return answer
  }

  /**
   * Refreshes the session's tokens now; other calls do so when needed. Returns the session's user, or undefined if
   * another tab or process has just refreshed them.
   *
   * @throws KeywayError `authentication_required` if nobody is signed in
   */
  async refresh(): Promise<UserObject | undefined> {
    return (await this.#tokens.refresh())?.user
  }

  /** The account's total usage, with all keys and in all sessions, by hour or day; complete up to some seconds ago. */
  usage(range: UsageRange = {}): Promise<UsageAnswer> {
    return this.#transport.call('GET', '/v1/usage', { query: usageQuery(range) })
  }

  /** Ends the session on the server, and deletes its tokens from the store. Does nothing if nobody is signed in. */
  async logout(): Promise<void> {
    const refresh_token = await this.#tokens.refreshToken()
    if (refresh_token === undefined) return
    const body = { refresh_token }
    await this.#transport.call('POST', '/auth/logout', { body, as: 'none', repeatable: true })
    await this.#tokens.delete()
  }

  /** Revokes an API key or refresh token by the secret itself (RFC 7009), for anyone who found one. */
  revoke(token: string): Promise<void> {
    const body = { token }
    return this.#transport.call('POST', '/auth/revoke', { body, as: 'none', repeatable: true })
  }

  /** Exchanges an API key for an agent token, for example on a backend that the `getToken` of an agent calls. */
  exchange(body: { api_key: string; audience?: string }): Promise<AgentTokenAnswer> {
    return this.#transport.call('POST', '/auth/agent-token', { body, as: 'none', repeatable: true })
  }

  #refresh(refresh_token: string, key: string): Promise<SessionAnswer> {
    return this.#transport.call('POST', '/auth/refresh', {
      body: { refresh_token },
      headers: { 'idempotency-key': key },
      as: 'none',
      repeatable: true,
    })
  }
}
