import { type Clock, SECOND, toRfc3339 } from '../clock.ts'
import { INTERRUPTED, isInterrupted } from '../outbox/interruption.ts'
import type { Outgoing } from '../outgoing/outgoing.ts'
import { VERSION } from '../version.ts'
import { signatureHeaders } from './signature.ts'
import { type AttemptResult, MAX_LOGGED_ANSWER_BYTES, type WebhookDelivery } from './webhook.ts'

/** Where an event is sent, and the secrets that sign it. */
export interface Target {
  url: string
  /** The signing secrets, `whsec_…`, at least one. */
  secrets: readonly string[]
}

/** Sends one event once. Every response but 2xx is a failure, including redirects. */
export async function attempt(
  { clock, call }: { clock: Clock; call: Outgoing },
  { url, secrets }: Target,
  delivery: WebhookDelivery,
  signal?: AbortSignal,
): Promise<AttemptResult> {
  const at = clock.now()
  const startedAt = performance.now()
  const body = bodyOf(delivery)
  const headers = {
    'content-type': 'application/json',
    'user-agent': `Keyway/${VERSION}`,
    ...signatureHeaders(secrets, delivery.id, Math.floor(at / SECOND), body),
  }
  const duration = () => Math.round(performance.now() - startedAt)
  try {
    const { status, text } = await call(url, { method: 'POST', headers, body, signal })
    const error = status >= 200 && status < 300 ? null : `status ${status}`
    return { at, durationMs: duration(), status, error, answer: beginningOf(text) }
  } catch (error) {
    const reason = isInterrupted(signal) ? INTERRUPTED : (error as Error).message
    return { at, durationMs: duration(), status: null, error: reason, answer: null }
  }
}

export function bodyOf({ type, createdAt, sequence, subject, data }: WebhookDelivery): string {
  return JSON.stringify({ type, timestamp: toRfc3339(createdAt), sequence, subject, data: JSON.parse(data) })
}

/** The first bytes of the answer in UTF-8, without control characters other than line breaks and tabs. */
function beginningOf(text: string): string {
  const bytes = Buffer.from(text.slice(0, MAX_LOGGED_ANSWER_BYTES)).subarray(0, MAX_LOGGED_ANSWER_BYTES)
  // If the last character was cut in the middle of its bytes, decoding it gives U+FFFD.
  return bytes
    .toString()
    .replace(/\ufffd$/, '')
    .replace(/[^\P{Cc}\n\t]/gu, '')
}
