import { type ActedBy, auditedOutcome, withoutChanges } from '../audit/audit.ts'
import { newId } from '../ids.ts'
import type { Caller } from '../network.ts'
import { sha256 } from '../secrets.ts'
import type { Store, Transaction } from '../store.ts'
import { type ApiKey, statusOf } from './api-key.ts'
import type { ApiKeyDeps } from './api-key-deps.ts'
import { mailOwner } from './mail-owner.ts'

export function createRevocation({ storage, clock, outbox, audit, imported }: ApiKeyDeps) {
  const { store } = storage

  return {
    /** Null for an unknown key and for another user's. */
    revoke(userId: string, id: string, caller: Caller | null): Promise<ApiKey | null> {
      return storage.transaction(
        async tx => {
          const ownedKey = await tx.apiKeys.findOwned(userId, id)
          return (
            ownedKey && ((await revokeWithin(tx, id, caller)) ?? (await tx.apiKeys.findOwned(userId, id)))
          )
        },
        async currentStore => ifRevoked(await currentStore.apiKeys.findOwned(userId, id)),
      )
    },

    revokeById(id: string, by: ActedBy): Promise<ApiKey | null> {
      return audit.perform(
        by,
        async tx => {
          const revokedKey = await revokeWithin(tx, id, null)
          if (!revokedKey) return withoutChanges(await findById(tx, id))
          return auditedOutcome<ApiKey | null>(revokedKey, {
            type: 'api_key.revoked',
            subject: { type: 'api_key', id, user_id: revokedKey.userId },
            before: null,
            after: { status: 'revoked' },
          })
        },
        async currentStore => ifRevoked(await findById(currentStore, id)),
      )
    },

    async revokeByPossession(key: string, caller: Caller): Promise<boolean> {
      const foundKey = imported.mayBeKey(key) ? await store.apiKeys.findByHash(sha256(key)) : null
      if (!foundKey) return false
      const mailId = newId(clock.now())
      await storage.transaction(
        async tx => {
          const revokedKey = await revokeWithin(tx, foundKey.id, caller)
          if (!revokedKey) return true
          const now = clock.now()
          await mailOwner(tx, outbox, revokedKey, {
            id: mailId,
            now,
            about: { kind: 'api_key_revoked_by_holder', at: now },
          })
          return true
        },
        async currentStore => ifRevoked(await findById(currentStore, foundKey.id)) && true,
      )
      return true
    },
  }

  /** Revokes a key; null if it is unknown or was revoked already. */
  function revokeWithin(tx: Transaction, id: string, caller: Caller | null): Promise<ApiKey | null> {
    const now = clock.now()
    return tx.apiKeys.revoke(id, now, { at: now, caller })
  }
}

async function findById(store: Store, id: string): Promise<ApiKey | null> {
  const [found] = await store.apiKeys.findMany([id])
  return found ? store.apiKeys.findOwned(found.userId, id) : null
}

/** The key as read again after a COMMIT of unknown outcome; undefined, for no commit, unless it is revoked. */
function ifRevoked(apiKey: ApiKey | null): ApiKey | undefined {
  return apiKey && statusOf(apiKey, apiKey.createdAt) === 'revoked' ? apiKey : undefined
}
