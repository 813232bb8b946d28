import { fullJitter } from './backoff.ts'
import { pause, type SdkClock, systemClock } from './clock.ts'
import { userAgent } from './environment.ts'
import { errorFromFetch, errorFromResponse, KeywayError } from './errors.ts'

export interface JsonRequest {
  method?: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE'
  body?: object
  headers?: Record<string, string>
  signal?: AbortSignal
}

/** One request without retries. Resolves with undefined for a response with status 204. */
export async function requestJson<Answer>(
  fetch: typeof globalThis.fetch,
  url: string,
  { method = 'GET', body, headers, signal }: JsonRequest,
): Promise<Answer> {
  const init: RequestInit = {
    method,
    headers: {
      accept: 'application/json',
      ...userAgent(),
      ...(body && { 'content-type': 'application/json' }),
      ...headers,
    },
    body: body && JSON.stringify(body),
    signal,
    // Redirects are not followed: one would send the credential to another address.
    redirect: 'error',
    credentials: 'omit',
    cache: 'no-store',
  }
  const response = await fetch(url, init).catch(cause => {
    throw signal?.aborted ? signal.reason : errorFromFetch(cause, url)
  })
  if (!response.ok) throw await errorFromResponse(response)
  if (response.status === 204) return undefined as Answer
  return (await response.json().catch(cause => {
    if (signal?.aborted) throw signal.reason
    throw new KeywayError('bad_response', 'The response is incomplete or not JSON.', {
      retryable: true,
      cause,
    })
  })) as Answer
}

export interface RetryOptions {
  maxRetries: number
  /** Longest `Retry-After` to wait for, in seconds; beyond it the error is thrown. */
  longestWaitSeconds: number
  /** For each attempt. */
  timeoutMs: number
  clock?: SdkClock
}

/**
 * Retries after retryable errors, with full jitter and never earlier than `Retry-After`. For a call that is not
 * idempotent, `maxRetries` must be 0.
 */
export async function withRetries<Answer>(
  attempt: (signal: AbortSignal) => Promise<Answer>,
  { maxRetries, longestWaitSeconds, timeoutMs, clock = systemClock }: RetryOptions,
  signal?: AbortSignal,
): Promise<Answer> {
  for (let retries = 0; ; retries++) {
    try {
      return await withTimeout(attempt, timeoutMs, clock, signal)
    } catch (error) {
      if (!(error instanceof KeywayError) || !error.retryable || retries >= maxRetries) throw error
      const retryAfterSeconds = error.retryAfter ?? 0
      if (retryAfterSeconds > longestWaitSeconds) throw error
      await pause(clock, retryAfterSeconds * 1000 + fullJitter(retries, clock.random()), signal)
    }
  }
}

async function withTimeout<Answer>(
  attempt: (signal: AbortSignal) => Promise<Answer>,
  timeoutMs: number,
  clock: SdkClock,
  signal?: AbortSignal,
): Promise<Answer> {
  signal?.throwIfAborted()
  const controller = new AbortController()
  const abort = () => controller.abort(signal?.reason)
  signal?.addEventListener('abort', abort, { once: true })
  const cancel = clock.after(timeoutMs, () => {
    const message = `No answer within ${timeoutMs / 1000} s. Check the network, or raise timeoutMs.`
    controller.abort(new KeywayError('timeout', message, { retryable: true }))
  })
  try {
    return await attempt(controller.signal)
  } finally {
    cancel()
    signal?.removeEventListener('abort', abort)
  }
}
