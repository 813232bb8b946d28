import { KeywayError } from './errors.ts'
import { type JsonRequest, type RetryOptions, requestJson, withRetries } from './http.ts'
import { notSignedInError, type SessionTokens } from './session-tokens.ts'

export interface TransportOptions {
  origin: string
  apiKey: string | undefined
  app: { id: string; secret: string } | undefined
  tokens: SessionTokens
  fetch: typeof fetch
  retry: RetryOptions
}

type Method = NonNullable<JsonRequest['method']>

export interface CallOptions {
  body?: object
  query?: Record<string, string | number | undefined>
  headers?: Record<string, string>
  /** The credential of the call. Default: the user's (API key or session). */
  as?: 'user' | 'app' | 'none'
  /** Whether the call may be repeated without a second effect. Default: true, except for POST. */
  repeatable?: boolean
  signal?: AbortSignal
}

/** Sends calls to the service, with credentials, retries, and one refresh if the access token is rejected. */
export class Transport {
  #options: TransportOptions

  constructor(options: TransportOptions) {
    this.#options = options
  }

  async call<Answer>(method: Method, path: string, options: CallOptions = {}): Promise<Answer> {
    const { as = 'user' } = options
    if (as === 'none') return this.#send(method, path, options, undefined)
    if (as === 'app') return this.#send(method, path, options, this.#appCredential())
    if (this.#options.apiKey) return this.#send(method, path, options, `Bearer ${this.#options.apiKey}`)
    return this.#callInSession(method, path, options)
  }

  async #callInSession<Answer>(method: Method, path: string, options: CallOptions): Promise<Answer> {
    const { tokens } = this.#options
    const access = await tokens.access()
    if (access === undefined) throw notSignedInError()
    try {
      return await this.#send<Answer>(method, path, options, `Bearer ${access}`)
    } catch (error) {
      // `invalid_token` is refused before the call has any effect, so even a non-idempotent one may be sent again.
      if (!(error instanceof KeywayError) || error.code !== 'invalid_token') throw error
      await tokens.refresh(access)
      return this.#send(method, path, options, `Bearer ${await tokens.access()}`)
    }
  }

  #send<Answer>(method: Method, path: string, options: CallOptions, credential?: string): Promise<Answer> {
    const { origin, fetch, retry } = this.#options
    const { body, query, repeatable = method !== 'POST' } = options
    const url = `${origin}${path}${queryString(query)}`
    const headers = { ...options.headers, ...(credential && { authorization: credential }) }
    const retryOptions = repeatable ? retry : { ...retry, maxRetries: 0 }
    const attempt = (signal: AbortSignal) =>
      requestJson<Answer>(fetch, url, { method, body, headers, signal })
    return withRetries(attempt, retryOptions, options.signal)
  }

  #appCredential(): string {
    const { app } = this.#options
    if (!app) throw new KeywayError('invalid_configuration', 'This call needs app: { id, secret }.')
    return `Basic ${btoa(`${app.id}:${app.secret}`)}`
  }
}

/** Encodes one path segment, so that its value cannot change the path. */
export function segment(id: string): string {
  return encodeURIComponent(id)
}

function queryString(query: CallOptions['query'] = {}): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) parameters.set(name, String(value))
  }
  return parameters.size > 0 ? `?${parameters}` : ''
}
