import { KeywayError } from '../errors.ts'
import type { Transaction } from '../store.ts'
import { type ApiKey, isNoWider } from './api-key.ts'
import type { ApiKeyDeps } from './api-keys.ts'
import { type Metadata, storedForm } from './metadata.ts'

export interface KeyChange {
  name?: string | null
  allowedNetworks?: string[]
  /** Null removes it. */
  externalId?: string | null
  /** Replaces all of it; null or an empty object removes it. */
  metadata?: Metadata | null
}

type Outcome = { apiKey: ApiKey } | { refused: 'not_found' | 'widens' }

/**
 * Changes a key. A person may do so freely; a caller that authenticates with a key may only narrow the networks of
 * its owner's keys, so that a key that leaked inside a network cannot be made usable outside of it.
 */
export function createChange({
  storage,
  clock,
  changeLimits,
}: Pick<ApiKeyDeps, 'storage' | 'clock' | 'changeLimits'>) {
  return async function update(
    userId: string,
    id: string,
    change: KeyChange,
    by: 'person' | 'key',
  ): Promise<ApiKey> {
    const found = await storage.store.apiKeys.findOwned(userId, id)
    if (!found) throw refusal('not_found')
    // A leaked key has a limit of its own, so that it cannot use up its owner's.
    if (changesNetworks(found, change)) changeLimits.take(`${by}:${userId}`)
    const outcome = await storage.transaction<Outcome>(async tx => {
      const current = await lockedForNetworks(tx, found, change)
      if (!current) return { refused: 'not_found' }
      if (by === 'key' && widensNetworks(current, change)) return { refused: 'widens' }
      const apiKey = await tx.apiKeys.update(userId, id, rowsOf(current, change), clock.now())
      return apiKey ? { apiKey } : { refused: 'not_found' }
    })
    if ('apiKey' in outcome) return outcome.apiKey
    throw refusal(outcome.refused)
  }
}

function rowsOf(current: ApiKey, { metadata, allowedNetworks, ...others }: KeyChange) {
  return {
    ...others,
    ...(changesNetworks(current, { allowedNetworks }) && { allowedNetworks }),
    ...(metadata !== undefined && { metadata: storedForm(metadata) }),
  }
}

/** Locks the owner's row, so that of two concurrent changes the later is compared with the result of the earlier. */
async function lockedForNetworks(
  tx: Transaction,
  found: ApiKey,
  { allowedNetworks }: KeyChange,
): Promise<ApiKey | null> {
  if (!allowedNetworks) return found
  await tx.users.lock(found.userId)
  return tx.apiKeys.findOwned(found.userId, found.id)
}

/** Where they stay as they are, nothing is recorded, and no hub need load the key's status again. */
function changesNetworks(current: ApiKey, { allowedNetworks }: KeyChange): boolean {
  return allowedNetworks !== undefined && allowedNetworks.join() !== current.allowedNetworks.join()
}

function widensNetworks(current: ApiKey, { allowedNetworks }: KeyChange): boolean {
  return allowedNetworks !== undefined && !isNoWider(allowedNetworks, current.allowedNetworks)
}

function refusal(refused: 'not_found' | 'widens'): KeywayError {
  if (refused === 'not_found') return new KeywayError('not_found', 'There is no such API key.')
  return new KeywayError(
    'session_required',
    'A key may only narrow allowed_networks: each must lie within one that is allowed now. Sign in to allow more.',
  )
}
