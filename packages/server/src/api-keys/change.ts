import { KeywayError } from '../errors.ts'
import type { Transaction } from '../store.ts'
import { type ApiKey, isNoWider } from './api-key.ts'
import type { ApiKeyDeps } from './api-keys.ts'

export interface KeyChange {
  name?: string | null
  allowedNetworks?: string[]
}

type Outcome = { apiKey: ApiKey } | { refused: 'not_found' | 'widens' }

/**
 * Changes a key. A person may do so freely; a caller that authenticates with a key may only narrow the networks of
 * its owner's keys, so that a key that leaked inside a network cannot be made usable outside of it.
 */
export function createChange({ storage, clock }: Pick<ApiKeyDeps, 'storage' | 'clock'>) {
  return async function update(
    userId: string,
    id: string,
    change: KeyChange,
    by: 'person' | 'key',
  ): Promise<ApiKey> {
    const outcome = await storage.transaction<Outcome>(async tx => {
      const refused = await refusalOfNetworks(tx, userId, id, change, by)
      if (refused) return { refused }
      const apiKey = await tx.apiKeys.update(userId, id, change, clock.now())
      return apiKey ? { apiKey } : { refused: 'not_found' }
    })
    if ('apiKey' in outcome) return outcome.apiKey
    throw refusal(outcome.refused)
  }
}

/** Locks the owner's row, so that of two concurrent changes the later is compared with the result of the earlier. */
async function refusalOfNetworks(
  tx: Transaction,
  userId: string,
  id: string,
  { allowedNetworks }: KeyChange,
  by: 'person' | 'key',
): Promise<'not_found' | 'widens' | null> {
  if (!allowedNetworks) return null
  await tx.users.lock(userId)
  if (by === 'person') return null
  const current = await tx.apiKeys.findOwned(userId, id)
  if (!current) return 'not_found'
  return isNoWider(allowedNetworks, current.allowedNetworks) ? null : 'widens'
}

function refusal(refused: 'not_found' | 'widens'): KeywayError {
  if (refused === 'not_found') return new KeywayError('not_found', 'There is no such API key.')
  return new KeywayError(
    'session_required',
    'A key may only narrow allowed_networks: each must lie within one that is allowed now. Sign in to allow more.',
  )
}
