import type { Instant } from '../clock.ts'
import { recordEnding } from '../endings/record-ending.ts'
import { newId } from '../ids.ts'
import type { Caller } from '../network.ts'
import { sha256 } from '../secrets.ts'
import type { Store, Transaction } from '../store.ts'
import { type ApiKey, type OwnedApiKey, statusOf } from './api-key.ts'
import type { ApiKeyDeps } from './api-keys.ts'
import { isWellFormed } from './authentication.ts'
import { mailOwner } from './mail-owner.ts'

/** The three ways to end a key: by its owner, by the operator, by whoever holds it. */
export function createRevocation({ storage, clock, outbox }: ApiKeyDeps) {
  const { store } = storage

  return {
    /** Null for another user's key as for an unknown one. */
    revoke(userId: string, id: string, caller: Caller | null): Promise<ApiKey | null> {
      return storage.transaction(
        async tx => {
          const owned = await tx.apiKeys.findOwned(userId, id)
          return owned && ((await end(tx, id, caller)) ?? (await tx.apiKeys.findOwned(userId, id)))
        },
        async afterwards => whenRevoked(await afterwards.apiKeys.findOwned(userId, id)),
      )
    },

    revokeById(id: string): Promise<ApiKey | null> {
      return storage.transaction(
        async tx => (await end(tx, id, null)) ?? (await findById(tx, id)),
        async afterwards => whenRevoked(await findById(afterwards, id)),
      )
    },

    /** Whoever finds a key can end it, and its owner hears of it. False when there is no such key. */
    async revokeByPossession(key: string, caller: Caller): Promise<boolean> {
      const held = isWellFormed(key) ? await store.apiKeys.findByHash(sha256(key)) : null
      if (!held) return false
      const mailId = newId(clock.now())
      await storage.transaction(
        async tx => {
          const ended = await end(tx, held.id, caller)
          if (!ended) return true
          const now = clock.now()
          await mailOwner(tx, outbox, ended, {
            id: mailId,
            now,
            about: { kind: 'api_key_revoked_by_holder', at: now },
          })
          return true
        },
        async afterwards => whenRevoked(await findById(afterwards, held.id)) && true,
      )
      return true
    },
  }

  /** Ends the key with all that belongs to it, once: null when it had ended already. */
  async function end(tx: Transaction, id: string, caller: Caller | null): Promise<ApiKey | null> {
    const now = clock.now()
    const ended = await tx.apiKeys.revoke(id, now)
    if (ended) await recordRevocation(tx, ended, now, caller)
    return ended
  }
}

/** Records a revocation in its own transaction. */
export async function recordRevocation(
  tx: Transaction,
  apiKey: ApiKey,
  now: Instant,
  caller: Caller | null,
): Promise<void> {
  const { id, userId } = apiKey
  await recordEnding(tx, { kind: 'api_key', ids: [id], userId, at: now, because: 'api_key_revoked', caller })
}

/** Lets every hub ask about the key anew: now by the event, and for certain by the sweep of the endings. */
export async function tellChanged(tx: Transaction, { id, userId }: ApiKey, now: Instant): Promise<void> {
  await recordEnding(tx, { kind: 'api_key', ids: [id], userId, at: now, because: null, caller: null })
}

async function findById(store: Store, id: string): Promise<OwnedApiKey | null> {
  const [found] = await store.apiKeys.findMany([id])
  return found ?? null
}

function whenRevoked(apiKey: ApiKey | null): ApiKey | undefined {
  return apiKey && statusOf(apiKey, apiKey.createdAt) === 'revoked' ? apiKey : undefined
}
