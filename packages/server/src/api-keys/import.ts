import { type ActedBy, auditedOutcome, withoutChanges } from '../audit/audit.ts'
import { invalidRequest, KeywayError } from '../errors.ts'
import { newId } from '../ids.ts'
import { NO_LIMITS } from '../limits/limit.ts'
import { withDefaults } from '../limits/policy.ts'
import { violationOf } from '../policies/policy.ts'
import { securityEvent } from '../security-events/security-event.ts'
import type { AuditedTransaction } from '../store.ts'
import type { EmailAddress } from '../users/email-address.ts'
import type { User } from '../users/user.ts'
import { type ApiKey, isAdministrative, type NewApiKey, newApiKey, type Scopes } from './api-key.ts'
import type { ApiKeyDeps } from './api-key-deps.ts'

/** Maximum number of keys of one import, which is one transaction. */
export const MAX_IMPORTED_KEYS = 1000

/** A key of another system, of which only the hash is known. */
export interface KeyToImport
  extends Pick<NewApiKey, 'name' | 'scopes' | 'expiresAt' | 'appId' | 'externalId'> {
  /** The owner, who must have an account already. */
  owner: { userId: string } | { email: EmailAddress }
  /** The SHA-256 of the whole key; the hash is in base64url, as it is stored. */
  keyHash: string
  /** The first characters of the key, at most 12. */
  keyPrefix: string
}

export interface ImportedKey {
  id: string
  /** False if the owner had this key already, or it occurs earlier in the same import. Then it is skipped. */
  isNew: boolean
}

interface PreparedKey {
  apiKey: ApiKey
  index: number
}

export function createImport({
  storage,
  clock,
  audit,
  policies,
  imported: importedKeys,
  maxActiveKeys,
}: Pick<ApiKeyDeps, 'storage' | 'clock' | 'audit' | 'policies' | 'imported' | 'maxActiveKeys'>) {
  /** @throws KeywayError `invalid_request`, `key_limit_reached`, `key_conflict` (the key of another account) */
  return async function importKeys(keys: readonly KeyToImport[], by: ActedBy): Promise<ImportedKey[]> {
    const owners = await findOwners(keys)
    const prepared = await prepare(keys, owners, by)
    const importResults = await audit.perform(by, async tx => {
      const outcome = await insertAll(tx, prepared)
      const createdCount = outcome.filter(({ isNew }) => isNew).length
      if (createdCount === 0) return withoutChanges(outcome)
      tx.publish({ type: 'api_keys.imported' })
      return auditedOutcome(outcome, {
        type: 'api_key.imported',
        subject: { type: 'api_key', id: null, user_id: null },
        before: null,
        after: { imported: createdCount, skipped: keys.length - createdCount },
      })
    })
    await importedKeys.load()
    return importResults
  }

  async function findOwners(keys: readonly KeyToImport[]): Promise<User[]> {
    const { users } = storage.store
    const usersByIdentifier = new Map<string, User | null>()
    const owners: User[] = []
    for (const [index, { owner }] of keys.entries()) {
      const [field, identifier] = 'userId' in owner ? ['user_id', owner.userId] : ['email', owner.email]
      if (!usersByIdentifier.has(identifier))
        usersByIdentifier.set(
          identifier,
          'userId' in owner ? await users.find(owner.userId) : await users.findByEmail(owner.email),
        )
      const user = usersByIdentifier.get(identifier)
      if (!user || user.status === 'deleted') throw importRefusal(index, field!, 'has no account')
      owners.push(user)
    }
    return owners
  }

  /** Creates the ids before the transaction, so that a retried transaction inserts the same keys. */
  async function prepare(
    keys: readonly KeyToImport[],
    owners: readonly User[],
    by: ActedBy,
  ): Promise<PreparedKey[]> {
    const now = clock.now()
    const currentPolicies = await policies.read()
    return keys.map((key, index) => {
      const owner = owners[index]!
      if (key.expiresAt !== null && key.expiresAt <= now)
        throw importRefusal(index, 'expires_at', 'must lie in the future')
      if (key.scopes?.some(isAdministrative) && owner.role !== 'admin')
        throw importRefusal(index, 'scopes', 'may contain admin:… for administrators only')
      // Whoever imports an administrator's key may know it, and could act in that administrator's name.
      if (mayAdminister(key.scopes, owner) && by.actor.type === 'user' && by.actor.id !== owner.id)
        throw importRefusal(
          index,
          'scopes',
          'must not be empty and must not contain admin:… for another administrator; use the keyway command',
        )
      const violation = violationOf(key, currentPolicies, now)
      if (violation) throw importRefusal(index, violation.field, violation.message)
      const limits = withDefaults(NO_LIMITS, currentPolicies)
      const { apiKey } = newApiKey(owner.id, { ...key, allowedNetworks: [], limits, id: newId(now) }, now)
      const { keyHash, keyPrefix } = key
      return { apiKey: { ...apiKey, keyHash, keyPrefix }, index }
    })
  }

  async function insertAll(tx: AuditedTransaction, prepared: readonly PreparedKey[]): Promise<ImportedKey[]> {
    const now = clock.now()
    const freePlaces = await freePlacesOf(
      tx,
      [...new Set(prepared.map(({ apiKey }) => apiKey.userId))].sort(),
      now,
    )
    const existingKeys = await tx.apiKeys.findByHashes(prepared.map(({ apiKey }) => apiKey.keyHash))
    const outcome: ImportedKey[] = []
    for (const { apiKey, index } of prepared) {
      const { userId, keyHash } = apiKey
      let existingKey = existingKeys.get(keyHash)
      if (!existingKey) {
        const placesLeft = freePlaces.get(userId)!
        if (placesLeft === 0) throw limitReached(index, userId, maxActiveKeys)
        if (await tx.apiKeys.insertImported({ ...apiKey, createdAt: now })) {
          freePlaces.set(userId, placesLeft - 1)
          existingKeys.set(keyHash, { id: apiKey.id, userId })
          await tx.securityEvents.insert(
            securityEvent('api_key_created', userId, now, null, { keyId: apiKey.id }),
          )
          outcome.push({ id: apiKey.id, isNew: true })
          continue
        }
        // A concurrent import inserted the hash first.
        existingKey = (await tx.apiKeys.findByHashes([keyHash])).get(keyHash)
      }
      if (existingKey?.userId !== userId) throw keyOfAnotherAccount(index)
      outcome.push({ id: existingKey.id, isNew: false })
    }
    return outcome
  }

  /** How many more active keys each user may have. Locks the users' rows, in the given order. */
  async function freePlacesOf(
    tx: AuditedTransaction,
    userIds: readonly string[],
    now: number,
  ): Promise<Map<string, number>> {
    const freePlaces = new Map<string, number>()
    for (const id of userIds) {
      await tx.users.lock(id)
      freePlaces.set(id, maxActiveKeys - (await tx.apiKeys.countActive(id, now, maxActiveKeys)))
    }
    return freePlaces
  }
}

function mayAdminister(scopes: Scopes, { role }: User): boolean {
  return role === 'admin' && (scopes === null || scopes.some(isAdministrative))
}

function importRefusal(index: number, field: string, message: string): KeywayError {
  return invalidRequest([{ field: `keys.${index}.${field}`, message }])
}

function limitReached(index: number, userId: string, limit: number): KeywayError {
  return new KeywayError(
    'key_limit_reached',
    `keys.${index}: the account ${userId} would have more than ${limit} active keys, which is the limit (KEYWAY_MAX_ACTIVE_KEYS). Nothing was imported.`,
  )
}

function keyOfAnotherAccount(index: number): KeywayError {
  return new KeywayError(
    'key_conflict',
    `keys.${index}.sha256: another account has this key. Nothing was imported.`,
  )
}
