import { KeywayError } from '../errors.ts'
import { sha256 } from '../secrets.ts'
import type { Store } from '../store.ts'
import { KEY_REFUSALS, type KeyUse, type OwnedApiKey, refusalOf } from './api-key.ts'
import type { ImportedKeys } from './imported-keys.ts'

/**
 * The stored key for a presented text, even if it is revoked or expired. Looked up by the hash of the whole text, so
 * that timing does not reveal a partially correct guess.
 *
 * @param id the id that the key must have, if any
 * @throws KeywayError `invalid_api_key`, the same for malformed and unknown keys, and those with another id
 */
export async function findPresented(
  { apiKeys }: Store,
  imported: Pick<ImportedKeys, 'mayBeKey'>,
  key: string,
  id?: string,
): Promise<OwnedApiKey> {
  const apiKey = imported.mayBeKey(key) ? await apiKeys.findByHash(sha256(key)) : null
  if (apiKey && (id === undefined || apiKey.id === id)) return apiKey
  throw new KeywayError(
    'invalid_api_key',
    'This is no API key of this service. A key is svc_ and 32 letters or digits.',
  )
}

/** @throws KeywayError that says why the key may not be used */
export function assertUsable(apiKey: OwnedApiKey, use: KeyUse): void {
  const refusal = refusalOf(apiKey, use)
  if (!refusal) return
  const extras = refusal === 'insufficient_scope' ? { scope: use.scope } : {}
  throw new KeywayError(refusal, KEY_REFUSALS[refusal](use), extras)
}
