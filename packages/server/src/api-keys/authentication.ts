import { API_KEY_PATTERN } from '@keyway/sdk/protocol'
import { KeywayError } from '../errors.ts'
import { sha256 } from '../secrets.ts'
import type { Store } from '../store.ts'
import { type KeyRefusal, type KeyUse, type OwnedApiKey, refusalOf } from './api-key.ts'

/**
 * The genuine key behind a presented text, dead or alive. Found by the hash of all of it, so the time that this
 * takes tells nothing of how much of a guess was right.
 *
 * @throws KeywayError `invalid_api_key`, in the same words for malformed and unknown ones
 */
export async function findPresented(store: Store, key: string): Promise<OwnedApiKey> {
  const apiKey = isWellFormed(key) ? await store.apiKeys.findByHash(sha256(key)) : null
  if (apiKey) return apiKey
  throw new KeywayError(
    'invalid_api_key',
    'This is no API key of this service. A key is svc_ and 32 letters or digits.',
  )
}

/** Never trimmed and never folded: a key has one spelling. */
export function isWellFormed(key: unknown): key is string {
  return typeof key === 'string' && API_KEY_PATTERN.test(key)
}

/** How HTTP answers each reason. The hub's close codes for the same reasons are in hub/close-codes.ts. */
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

/** @throws KeywayError that says why a genuine key may not be used so */
export function assertUsable(apiKey: OwnedApiKey, use: KeyUse): void {
  const refusal = refusalOf(apiKey, use)
  if (refusal) throw ERRORS[refusal](use)
}
