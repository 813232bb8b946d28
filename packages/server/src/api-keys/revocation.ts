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

/** Revokes keys: by their owner, by the operator, or by anyone who has the key. */
export function createRevocation({ storage, clock, outbox }: ApiKeyDeps) {
  const { store } = storage

  return {
    /** Null for an unknown key and for another user's. */
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

    /** For anyone who found a key; its owner is notified. False when there is no such key. */
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

  /** Revokes the key and records it; null when it was revoked already. */
  async function end(tx: Transaction, id: string, caller: Caller | null): Promise<ApiKey | null> {
    const now = clock.now()
    const ended = await tx.apiKeys.revoke(id, now)
    if (ended) await recordRevocation(tx, ended, now, caller)
    return ended
  }
}

/** Records a revocation within the transaction that revoked the key. */
export async function recordRevocation(
  tx: Transaction,
  apiKey: ApiKey,
  now: Instant,
  caller: Caller | null,
): Promise<void> {
  const { id, userId } = apiKey
  await recordEnding(tx, { kind: 'api_key', ids: [id], userId, at: now, because: 'api_key_revoked', caller })
}

/** Makes every hub load the key's status again: at once by an event, and reliably by the sweep. */
export async function recordChange(tx: Transaction, { id, userId }: ApiKey, now: Instant): Promise<void> {
  await recordEnding(tx, { kind: 'api_key', ids: [id], userId, at: now, because: null, caller: null })
}

async function findById(store: Store, id: string): Promise<OwnedApiKey | null> {
  const [found] = await store.apiKeys.findMany([id])
  return found ?? null
}

function whenRevoked(apiKey: ApiKey | null): ApiKey | undefined {
  return apiKey && statusOf(apiKey, apiKey.createdAt) === 'revoked' ? apiKey : undefined
}
