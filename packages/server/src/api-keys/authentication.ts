import { API_KEY_PATTERN } from '@keyway/sdk/protocol'
import type { Instant } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import { networkMatcher } from '../network.ts'
import { sha256 } from '../secrets.ts'
import type { Store } from '../store.ts'
import { type OwnedApiKey, statusOf } from './api-key.ts'
import type { KeyStanding } from './api-keys.ts'

/** What became of a genuine key, the strongest reason first. A deleted owner's keys are as good as revoked. */
export function standingNow(apiKey: OwnedApiKey, now: Instant): KeyStanding['standing'] {
  const status = apiKey.ownerStatus === 'deleted' ? 'revoked' : statusOf(apiKey, now)
  return status === 'active' && apiKey.ownerStatus === 'suspended' ? 'suspended' : status
}

export function standingOf(apiKey: OwnedApiKey, now: Instant): KeyStanding {
  const { id, userId, name, scopes, allowedNetworks, expiresAt } = apiKey
  return { keyId: id, userId, name, scopes, allowedNetworks, expiresAt, standing: standingNow(apiKey, now) }
}

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

const DEAD = {
  revoked: ['api_key_revoked', 'This API key was revoked. Make a new one.'],
  expired: ['api_key_expired', 'This API key has expired. Make a new one.'],
  suspended: ['account_suspended', 'The account of this API key is suspended. Ask the operator.'],
} as const

/** @throws KeywayError that says why a genuine key opens nothing now from this address */
export function assertOpens(apiKey: OwnedApiKey, address: string, now: Instant): void {
  const standing = standingNow(apiKey, now)
  if (standing !== 'active') {
    const [code, detail] = DEAD[standing]
    throw new KeywayError(code, detail)
  }
  if (apiKey.allowedNetworks.length > 0 && !networkMatcher(apiKey.allowedNetworks)(address)) {
    throw new KeywayError('network_not_allowed', 'This API key may not be used from this network.')
  }
}
