import type { ActedBy } from '../audit/audit.ts'
import { invalidRequest, KeywayError } from '../errors.ts'
import { quotasOf, type WantedLimits } from '../limits/limit.ts'
import { assertWithinPolicy, withDefaults } from '../limits/policy.ts'
import type { Caller } from '../network.ts'
import type { PageRequest, Slice } from '../paging.ts'
import { assertAllowed } from '../policies/policy.ts'
import { securityEvent } from '../security-events/security-event.ts'
import type { Store, Transaction } from '../store.ts'
import {
  type ApiKey,
  type ApiKeyStatus,
  administers,
  isAdministrative,
  type NewApiKey,
  newApiKey,
  type OwnedApiKey,
} from './api-key.ts'
import type { ApiKeyDeps } from './api-key-deps.ts'
import { assertUsable, findPresented } from './authentication.ts'
import { createChange, type KeyChange } from './change.ts'
import { createImport, type ImportedKey, type KeyToImport } from './import.ts'
import type { KeyAlerts } from './key-alerts.ts'
import { type LimitRefusal, limitReached, refusalByLimits } from './key-limits.ts'
import { createKeyNetworks } from './key-networks.ts'
import { createKeyNotices } from './key-notices.ts'
import { createLastUsed } from './last-used.ts'
import { bytesOf, type Metadata, storedForm } from './metadata.ts'
import { createRevocation } from './revocation.ts'
import { createRotation } from './rotation.ts'

export type { NewApiKey } from './api-key.ts'

export interface ApiKeys {
  /**
   * @throws KeywayError `account_suspended` (the owner is not an active user), `key_limit_reached`, `rate_limited`,
   *   `invalid_request` (the expiry is not in the future, a policy forbids the key or its limits, or the owner is no
   *   administrator and asks for an `admin:` scope), `idempotency_conflict` (the owner has a key with this id already),
   *   and the error that `condition.refusal` returns
   */
  create(
    userId: string,
    wanted: NewApiKey,
    caller: Caller,
    condition?: CreationCondition,
  ): Promise<{ key: string; apiKey: ApiKey }>
  /**
   * The owner's keys, newest first.
   *
   * @param status only keys with this status; null for all
   * @param externalId only keys with this external id
   */
  list(
    userId: string,
    status: ApiKeyStatus | null,
    page: PageRequest,
    externalId?: string,
  ): Promise<Slice<ApiKey>>
  /**
   * The person's active keys that have no scopes or an `admin:` scope, and so give administrative rights if the person
   * is an administrator.
   */
  listAdministrative(userId: string): Promise<ApiKey[]>
  /** The metadata of these keys; keys without metadata are absent. */
  metadataOf(keys: readonly Pick<ApiKey, 'id' | 'metadataBytes'>[]): Promise<Map<string, Metadata>>
  /** @throws KeywayError `not_found`, both for an unknown key and for another user's */
  get(userId: string, id: string): Promise<ApiKey>
  /**
   * @param by how the caller is authenticated: with a key, networks may only be narrowed and limits tightened
   * @throws KeywayError `not_found`, `session_required` (a caller with a key would allow more), `rate_limited`,
   *   `invalid_request` (a limit beyond that of the policies)
   */
  update(userId: string, id: string, change: KeyChange, by: 'person' | 'key'): Promise<ApiKey>
  /**
   * @throws KeywayError `not_found`, `api_key_inactive`, `api_key_replaced`, `key_limit_reached`, `rate_limited`,
   *   `invalid_request` (a policy forbids the new key)
   */
  rotate(
    userId: string,
    id: string,
    overlapSeconds: number,
    caller: Caller,
  ): Promise<{ key: string; apiKey: ApiKey }>
  /**
   * Imports keys of another system by their hashes, all or none; afterwards they authenticate like keys created here. A
   * key that its owner has already is skipped, even if it was revoked.
   * @throws KeywayError `invalid_request`, `key_limit_reached`, `key_conflict`
   */
  importKeys(keys: readonly KeyToImport[], by: ActedBy): Promise<ImportedKey[]>
  /**
   * Whether a text is worth a look-up as a key: it has the format of this service's keys or, while imported keys exist,
   * could be one of them.
   */
  mayBeKey(text: string): boolean
  /** Permanent and idempotent. @throws KeywayError `not_found` */
  revoke(userId: string, id: string, caller: Caller | null): Promise<ApiKey>
  /** Sets the operator's limits of any user's key, which its owner cannot change. @throws KeywayError `not_found` */
  setOperatorLimits(id: string, limits: WantedLimits, by: ActedBy): Promise<ApiKey>
  /** The remaining calls of these keys' quotas, by quota id. Reads nothing if no key has one. */
  quotasLeft(keys: readonly ApiKey[]): Promise<ReadonlyMap<string, number>>
  /** Revokes any user's key, for the operator. @throws KeywayError `not_found` */
  revokeById(id: string, by: ActedBy): Promise<ApiKey>
  /** Revokes the presented key, and mails its owner unless it was revoked before. False only for an unknown key. */
  revokeByPossession(key: string, caller: Caller): Promise<boolean>
  /**
   * The presented key, if it may be used now from this address with the required scope. Records its use, or
   * counts the refusal of a genuine key.
   *
   * @param wanted.id the id that the key must have; a key with another id is refused like an unknown one
   * @param wanted.scope the required scope
   * @param wanted.accept a further check by the caller; an error that it throws refuses the key, and no use is recorded
   * @throws KeywayError `invalid_api_key` (malformed and unknown alike), `api_key_revoked`, `api_key_expired`,
   * `account_suspended`, `network_not_allowed`, `insufficient_scope`
   */
  authenticate(
    key: string,
    caller: Caller,
    wanted?: { id?: string; scope?: string; accept?: (key: OwnedApiKey) => void | Promise<void> },
  ): Promise<OwnedApiKey>
  /** Finds keys by id, with their owners' status, including revoked and expired ones. Unknown ids are absent. */
  findMany(ids: readonly string[]): Promise<Map<string, OwnedApiKey>>
  /** Notices to owners about limits of their keys. */
  readonly alerts: KeyAlerts
  /**
   * Writes the buffered last uses, and queues the mails that these and the noted alerts about limits cause. Called on a
   * timer and at shutdown. Never rejects: what could not be written is kept for the next call.
   */
  flushUses(): Promise<void>
  /**
   * Mails the owners of keys that expire within 14, 7 and 1 days, once for each period. Returns how many were queued.
   */
  warnOfExpiry(): Promise<number>
}

/** A further condition of a creation, such as an approval that may be used once. */
export interface CreationCondition {
  /**
   * Checks the condition; an approval that may be used once counts as used from then on. Runs in the transaction that
   * stores the key, before the key is stored. If it returns false, the key is not created.
   */
  consume(tx: Transaction, apiKey: ApiKey): Promise<boolean>
  /** The error for the caller if the condition does not hold. */
  refusal(): KeywayError
}

type CreationRefusal = 'no_owner' | 'no_administrator' | 'already_created' | LimitRefusal
type CreationOutcome = { apiKey: ApiKey } | { refused: CreationRefusal | 'condition' }

export function createApiKeys(deps: ApiKeyDeps): ApiKeys {
  const { storage, clock, log, meter, limiter, policies, imported, knownNetworks } = deps
  const { store } = storage
  const notices = createKeyNotices(deps)
  const noteNetworks = createKeyNetworks(deps)
  const lastUsed = createLastUsed({
    ...deps,
    notices: { notifyOfReuse: notices.notifyOfReuse, noteNetworks },
  })
  const { revoke, revokeById, revokeByPossession } = createRevocation(deps)
  const { update, setOperatorLimits } = createChange(deps)
  const rotate = createRotation(deps)

  return {
    async create(userId, requested, caller, condition) {
      const now = clock.now()
      const currentPolicies = await policies.read()
      const wanted = { ...requested, limits: withDefaults(requested.limits, currentPolicies) }
      assertWithinPolicy(wanted.limits, currentPolicies)
      assertAllowed(wanted, currentPolicies, now)
      if (wanted.expiresAt !== null && wanted.expiresAt <= now) {
        throw invalidRequest([
          { field: 'expires_at', message: 'must lie in the future, for example "2030-01-01T00:00:00Z"' },
        ])
      }
      const { key, apiKey } = newApiKey(userId, wanted, now)
      const metadata = storedForm(wanted.metadata ?? null)
      const mayExist = wanted.id !== undefined
      const reason = await refusalNow(store, apiKey, mayExist)
      if (reason) throw refusal(reason)
      const outcome = await storage.runExclusive([`user:${userId}`], () =>
        storage.transaction<CreationOutcome>(
          tx => insertWithinLimits(tx, apiKey, metadata, { caller, mayExist, condition }),
          currentStore => committedKey(currentStore, apiKey),
        ),
      )
      if ('refused' in outcome)
        throw outcome.refused === 'condition' ? condition!.refusal() : refusal(outcome.refused)
      return { key, apiKey: outcome.apiKey }
    },

    async list(userId, status, page, externalId) {
      const now = clock.now()
      const { rows, next } = await (externalId === undefined
        ? store.apiKeys.list(userId, status, now, page)
        : store.apiKeys.listByExternalId(userId, externalId, status, now, page))
      return { rows: rows.map(lastUsed.withLastUse), next }
    },

    async listAdministrative(userId) {
      const page = { limit: deps.maxActiveKeys + 1, after: null }
      const { rows } = await store.apiKeys.list(userId, 'active', clock.now(), page)
      return rows.filter(({ scopes }) => administers(scopes))
    },

    async metadataOf(keys) {
      const ids = keys.filter(({ metadataBytes }) => metadataBytes !== null).map(({ id }) => id)
      const texts = await store.apiKeys.metadataOf(ids)
      return new Map([...texts].map(([id, text]) => [id, JSON.parse(text) as Metadata]))
    },

    async get(userId, id) {
      return lastUsed.withLastUse(requireFound(await store.apiKeys.findOwned(userId, id)))
    },

    async update(userId, id, change, by) {
      return lastUsed.withLastUse(await update(userId, id, change, by))
    },

    setOperatorLimits,

    quotasLeft: keys => limiter.quotasLeft(keys.flatMap(quotasOf)),

    rotate,

    importKeys: createImport(deps),

    mayBeKey: imported.mayBeKey,

    async revoke(userId, id, caller) {
      return lastUsed.withLastUse(requireFound(await revoke(userId, id, caller)))
    },

    async revokeById(id, by) {
      return lastUsed.withLastUse(requireFound(await revokeById(id, by)))
    },

    revokeByPossession,

    async authenticate(key, caller, { id, scope, accept } = {}) {
      const apiKey = await findPresented(store, imported, key, id)
      try {
        assertUsable(apiKey, { now: clock.now(), address: caller.address, scope })
        const acceptance = accept?.(apiKey)
        if (acceptance) await acceptance
      } catch (error) {
        if (error instanceof KeywayError) meter.countRefusal(apiKey.userId, apiKey.id, error.code)
        throw error
      }
      lastUsed.note(apiKey.id, caller)
      knownNetworks.noteUse(apiKey.userId, caller.network)
      return apiKey
    },

    async findMany(ids) {
      const apiKeys = await store.apiKeys.findMany(ids)
      return new Map(apiKeys.map(apiKey => [apiKey.id, apiKey]))
    },

    warnOfExpiry: notices.warnOfExpiry,

    alerts: deps.alerts,

    async flushUses() {
      try {
        await lastUsed.flush()
        await deps.alerts.flush()
      } catch (error) {
        // The buffered uses are kept for the next flush.
        log.warn({ error: String(error) }, 'last uses of keys could not be stored yet')
      }
    },
  }

  /** Locks the owner's row, so that of two concurrent creations only one gets the last place within the limit. */
  async function insertWithinLimits(
    tx: Transaction,
    apiKey: ApiKey,
    metadata: string | null,
    { caller, mayExist, condition }: { caller: Caller; mayExist: boolean; condition?: CreationCondition },
  ): Promise<CreationOutcome> {
    const owner = await tx.users.lock(apiKey.userId)
    if (owner?.status !== 'active') return { refused: 'no_owner' }
    if (apiKey.scopes?.some(isAdministrative) && owner.role !== 'admin')
      return { refused: 'no_administrator' }
    const reason = await refusalNow(tx, apiKey, mayExist)
    if (reason) return { refused: reason }
    if (condition && !(await condition.consume(tx, apiKey))) return { refused: 'condition' }
    // The time is taken under the lock, so that creation times are in the order of creation.
    const now = clock.now()
    const newKey = { ...apiKey, createdAt: now, metadataBytes: bytesOf(metadata) }
    await tx.apiKeys.insert(newKey, metadata)
    for (const quota of quotasOf(newKey)) await tx.quotas.insert(quota, newKey.id, now)
    await tx.securityEvents.insert(
      securityEvent('api_key_created', owner.id, now, caller, { keyId: newKey.id }),
    )
    return { apiKey: newKey }
  }

  async function refusalNow(
    from: Store,
    { userId, id }: ApiKey,
    mayExist: boolean,
  ): Promise<CreationRefusal | null> {
    if (mayExist && (await from.apiKeys.findOwned(userId, id))) return 'already_created'
    return refusalByLimits(from, userId, 'creation', deps, clock.now())
  }

  function refusal(reason: CreationRefusal): KeywayError {
    if (reason === 'no_owner')
      return new KeywayError('account_suspended', 'This account cannot make keys. Ask the operator.')
    if (reason === 'no_administrator')
      return invalidRequest([{ field: 'scopes', message: 'may contain admin:… for administrators only' }])
    if (reason === 'already_created')
      return new KeywayError('idempotency_conflict', 'This key was made already, and is shown only once.')
    return limitReached(reason, deps)
  }
}

/** Reads back the outcome of a creation after a COMMIT of unknown outcome; undefined if it was not committed. */
async function committedKey(
  store: Store,
  { userId, id, keyHash }: ApiKey,
): Promise<CreationOutcome | undefined> {
  const apiKey = await store.apiKeys.findOwned(userId, id)
  if (!apiKey) return undefined
  // With another hash, it is the key of a concurrent call with the same id, and this call's key was not stored.
  return apiKey.keyHash === keyHash ? { apiKey } : { refused: 'already_created' }
}

function requireFound(apiKey: ApiKey | null): ApiKey {
  if (!apiKey) throw new KeywayError('not_found', 'There is no such API key.')
  return apiKey
}
