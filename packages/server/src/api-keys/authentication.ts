import { API_KEY_PATTERN } from '@keyway/sdk/protocol'
import { KeywayError } from '../errors.ts'
import { sha256 } from '../secrets.ts'
import type { Store } from '../store.ts'
import { type KeyRefusal, type KeyUse, type OwnedApiKey, refusalOf } from './api-key.ts'

/**
 * The stored key for a presented text, also if revoked or expired. Looked up by the hash of the whole text, so that
 * timing does not reveal a partially correct guess.
 *
 * @throws KeywayError `invalid_api_key`, the same for malformed and unknown keys
 */
export async function findPresented(store: Store, key: string): Promise<OwnedApiKey> {
  const apiKey = isWellFormed(key) ? await store.apiKeys.findByHash(sha256(key)) : null
  if (apiKey) return apiKey
  throw new KeywayError(
    'invalid_api_key',
    'This is no API key of this service. A key is svc_ and 32 letters or digits.',
  )
}

/** No trimming, no case folding: a key has exactly one text form. */
export function isWellFormed(key: unknown): key is string {
  return typeof key === 'string' && API_KEY_PATTERN.test(key)
}

/** Refusals as HTTP errors. hub/close-codes.ts maps them to close codes. */
const ERRORS: Record<KeyRefusal, (use: KeyUse) => KeywayError> = {
  revoked: () => new KeywayError('api_key_revoked', 'This API key was revoked. Make a new one.'),
  expired: () => new KeywayError('api_key_expired', 'This API key has expired. Make a new one.'),
  suspended: () =>
    new KeywayError('account_suspended', 'The account of this API key is suspended. Ask the operator.'),
  network: () => new KeywayError('network_not_allowed', 'This API key may not be used from this network.'),
  scope: ({ scope }) =>
    new KeywayError(
      'insufficient_scope',
      `This API key lacks the scope ${scope}. Use a key that has it, or one without scopes.`,
      { scope },
    ),
}

/** @throws KeywayError that says why the key may not be used */
export function assertUsable(apiKey: OwnedApiKey, use: KeyUse): void {
  const refusal = refusalOf(apiKey, use)
  if (refusal) throw ERRORS[refusal](use)
}
