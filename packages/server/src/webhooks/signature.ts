import { randomBytes } from 'node:crypto'
import { hmac } from '../secrets.ts'

/** Prefix of secrets (Standard Webhooks); the key follows in base64. */
const SECRET_PREFIX = 'whsec_'
const SECRET_BYTES = 32

export function newWebhookSecret(): string {
  return SECRET_PREFIX + randomBytes(SECRET_BYTES).toString('base64')
}

/**
 * The headers that authenticate a body (Standard Webhooks 1.0, "Signature scheme"): one signature with each secret,
 * over the id, the time of this attempt in seconds, and the body.
 */
export function signatureHeaders(
  secrets: readonly string[],
  id: string,
  seconds: number,
  body: string,
): Record<string, string> {
  const message = Buffer.from(`${id}.${seconds}.${body}`)
  const signatures = secrets.map(secret => `v1,${hmac(keyOf(secret), message).toString('base64')}`)
  return {
    'webhook-id': id,
    'webhook-timestamp': String(seconds),
    'webhook-signature': signatures.join(' '),
  }
}

function keyOf(secret: string): Buffer {
  return Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64')
}
