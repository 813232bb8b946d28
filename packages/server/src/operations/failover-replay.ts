import type { OwnedApiKey } from '../api-keys/api-key.ts'
import {
  type Audit,
  type AuditedOutcome,
  auditedOutcome,
  BY_COMMAND_LINE,
  withoutChanges,
} from '../audit/audit.ts'
import type { AuditChange } from '../audit/audit-event.ts'
import type { Trust } from '../backup/authentication.ts'
import {
  digestJournal,
  earlierOf,
  type JournalDigest,
  type KeyDigest,
  type UserDigest,
} from '../backup/journal-digest.ts'
import type { EntryOf } from '../backup/journal-entry.ts'
import type { Clock, Instant } from '../clock.ts'
import type { Secrets } from '../secrets.ts'
import type { AuditedTransaction, Storage, Transaction } from '../store.ts'
import { ROLE_RANK, type User, type UserRole } from '../users/user.ts'
import { roleChange, statusChange } from '../users/user-changes.ts'
import { deleteWithin, suspendWithin } from '../users/users.ts'
import { type FactReplayDeps, replayFacts } from './failover-facts.ts'
import { RETENTION } from './housekeeping.ts'
import {
  REPLAY_KINDS,
  type ReplayKind,
  type ReplayOutcome,
  type ReplayReport,
  type UnresolvedChange,
} from './replay-report.ts'

export interface ReplayDeps {
  storage: Storage
  clock: Clock
  audit: Audit
  secrets: Secrets
  /** The id of this installation. A journal of another installation is refused. */
  serviceId: string
  /** The secrets that must have made the MACs of the journal, and whether files without a MAC are accepted too. */
  trust: Trust
  /** Called at intervals with the number of processed entries. */
  progress?: (entries: number) => void
}

/**
 * Re-applies the changes of the journal that the database lost, each by a conditional update in a separate transaction,
 * which notifies every node. Nodes may keep running. Re-applies endings, charges and credits; never grants or
 * activations. A second run changes nothing.
 *
 * @param files of the journal, listed before this run, which itself writes to the journal
 * @param dryRun change nothing, and count what would be changed
 * @throws OperatorError before anything is changed; KeywayError `unavailable`, after which it may be repeated
 */
export async function replayJournal(
  files: readonly string[],
  dryRun: boolean,
  { storage, clock, audit, secrets, serviceId, trust, progress = () => {} }: ReplayDeps,
): Promise<ReplayReport> {
  const { store } = storage
  const report = emptyReport()
  const factReplayDeps: FactReplayDeps = {
    storage,
    dryRun,
    trust,
    apply,
    count,
    progress,
    reportUnresolved,
    now: () => clock.now(),
  }

  const digest = await digestJournal(files, { trust, serviceId, progress })
  Object.assign(report, { entries: digest.entries, missing: digest.missing, openEnds: digest.openEnds })
  await replayKeys(digest)
  // Runs before accounts are ended, since that would end their sessions with another cause than in the journal.
  await replayFacts(files, factReplayDeps)
  for (const [id, userDigest] of digest.users) await replayUser(id, userDigest)
  for (const entry of digest.authorizations.values()) await replayAuthorizationWithdrawal(entry)
  for (const entry of digest.consents.values()) await replayConsentWithdrawal(entry)
  for (const entry of digest.appSecrets.values()) await replayAppSecrets(entry)
  if (digest.policies) await replayPolicies(digest.policies)
  return report

  async function apply(change: (tx: Transaction) => Promise<boolean>): Promise<ReplayOutcome> {
    return dryRun || (await storage.transaction(change)) ? 'replayed' : 'standing'
  }

  /**
   * Like `apply`, for administrative operations. It does not check that an administrator remains: that rule must not
   * prevent the replay of an ending.
   */
  async function applyAudited(
    change: (tx: AuditedTransaction) => Promise<AuditedOutcome<boolean>>,
  ): Promise<ReplayOutcome> {
    return dryRun || (await audit.perform(BY_COMMAND_LINE, change)) ? 'replayed' : 'standing'
  }

  function count(kind: ReplayKind, outcome: ReplayOutcome): void {
    report.counts[kind].found++
    report.counts[kind][outcome]++
  }

  function reportUnresolved(kind: ReplayKind, id: string, reason: UnresolvedChange['reason']): ReplayOutcome {
    report.left.push({ kind, id, reason })
    return 'left'
  }

  async function replayKeys({ keys }: JournalDigest): Promise<void> {
    const ids = [...keys.keys()]
    for (let start = 0; start < ids.length; start += BATCH) {
      const batch = ids.slice(start, start + BATCH)
      const keysById = new Map((await store.apiKeys.findMany(batch)).map(key => [key.id, key]))
      for (const id of batch) {
        const key = keysById.get(id)
        count('api_keys', key ? await replayKey(key, keys.get(id)!) : 'gone')
      }
    }
  }

  async function replayKey(key: OwnedApiKey, digest: KeyDigest): Promise<ReplayOutcome> {
    const { revokedAt, expiresAt } = digest
    if (key.revokedAt !== null) return 'standing'
    if (revokedAt !== null) return apply(tx => revoke(tx, key.id, revokedAt))
    const endsSooner = earlierOf(key.expiresAt, expiresAt) !== key.expiresAt
    const networksState = await compareNetworks(key, digest)
    if (networksState === 'undated') reportUnresolved('api_keys', key.id, 'networks_undated')
    if (endsSooner || networksState === 'lost')
      return apply(tx => restrictKey(tx, key, digest, networksState === 'lost'))
    return networksState === 'undated' ? 'left' : 'standing'
  }

  async function revoke(tx: Transaction, id: string, at: Instant): Promise<boolean> {
    return (await tx.apiKeys.revoke(id, at, { at: clock.now(), caller: null })) !== null
  }

  /**
   * Compares a key's networks with those of the journal: `lost` if the database lost the change that set the journal's
   * networks, `kept` if it has them or a newer change. The key's row has no time of that change, but the rows of
   * endings show whether a newer change exists; once these rows may be pruned, the result is `undated`. An empty list,
   * which allows every network, is never restored and counts as `kept`.
   */
  async function compareNetworks(
    key: OwnedApiKey,
    { allowedNetworks, at }: KeyDigest,
  ): Promise<'kept' | 'lost' | 'undated'> {
    if (allowedNetworks.length === 0 || allowedNetworks.join() === key.allowedNetworks.join()) return 'kept'
    if (at < clock.now() - RETENTION.endings) return 'undated'
    return (await store.replay.wasChangedSince(key.id, at)) ? 'kept' : 'lost'
  }

  async function restrictKey(
    tx: Transaction,
    key: OwnedApiKey,
    { expiresAt, allowedNetworks }: KeyDigest,
    withNetworks: boolean,
  ): Promise<boolean> {
    const now = clock.now()
    const isExpiryChanged = expiresAt !== null && (await tx.replay.endKeyBy(key, expiresAt, now))
    const areNetworksChanged =
      withNetworks && (await tx.replay.replaceNetworks(key, key.allowedNetworks, allowedNetworks, now))
    return isExpiryChanged || areNetworksChanged
  }

  async function replayUser(id: string, { status, at, role, deletion }: UserDigest): Promise<void> {
    const user = await store.users.find(id)
    if (role) count('roles', await replayRole(user, role.role))
    if (deletion && status !== 'deleted') count('deletions', await replayDeletion(user, deletion))
    if (status === 'active') return
    if (!user) count('users', 'gone')
    else if (user.status === 'deleted' || user.status === status) count('users', 'standing')
    else count('users', status === 'deleted' ? await deleteUser(id) : await suspend(id, at))
  }

  /**
   * Replays the last request for an account's deletion or the last cancellation, unless the database has a newer one.
   * If a cancellation were lost, the account would be deleted although its owner decided to keep it.
   */
  async function replayDeletion(
    user: User | null,
    { deletesAt, at }: NonNullable<UserDigest['deletion']>,
  ): Promise<ReplayOutcome> {
    if (!user || user.status === 'deleted') return 'gone'
    if (user.deletesAt === deletesAt) return 'standing'
    if (((await store.replay.lastDeletionChange(user.id)) ?? 0) > at) return 'standing'
    const by = { at: clock.now(), caller: null }
    return apply(async tx => {
      if (deletesAt === null) return (await tx.users.cancelDeletion(user.id, by)) !== null
      return (await tx.users.scheduleDeletion(user.id, deletesAt, by)) !== null
    })
  }

  /** Only demotions are re-applied. A lost promotion must be repeated by the operator. */
  async function replayRole(user: User | null, role: UserRole): Promise<ReplayOutcome> {
    if (!user || user.status === 'deleted') return 'gone'
    if (ROLE_RANK[user.role] <= ROLE_RANK[role]) return 'standing'
    return applyAudited(async tx => {
      const hasChanged = await tx.users.setRole(user.id, role, clock.now())
      return hasChanged ? auditedOutcome(true, roleChange(user, role)) : withoutChanges(false)
    })
  }

  async function deleteUser(id: string): Promise<ReplayOutcome> {
    return applyAudited(async tx => {
      const userBefore = await tx.users.find(id)
      const user = await deleteWithin(tx, id, clock.now(), secrets)
      if (!userBefore || !user) return withoutChanges(false)
      return auditedOutcome(true, statusChange('user.deleted', id, userBefore.status, 'deleted'))
    })
  }

  /** Suspends the account unless it was activated later. The lock prevents an activation between check and change. */
  async function suspend(id: string, at: Instant): Promise<ReplayOutcome> {
    if (((await store.replay.lastActivation(id)) ?? at) > at) return 'standing'
    return applyAudited(async tx => {
      await tx.users.lock(id)
      if (((await tx.replay.lastActivation(id)) ?? at) > at) return withoutChanges(false)
      const user = await suspendWithin(tx, id, clock.now())
      return user
        ? auditedOutcome(true, statusChange('user.suspended', id, 'active', 'suspended'))
        : withoutChanges(false)
    })
  }

  /**
   * Removes the app if the journal has its removal. Otherwise removes secrets that are older than the journal's last
   * entry for the app and missing in that entry, since they were replaced.
   */
  async function replayAppSecrets(entry: EntryOf<'app_secrets'>): Promise<void> {
    const { id, secrets, at, removed_at: removedAt } = entry
    const hashes = secrets.map(({ hash }) => hash)
    const app = await store.apps.find(id)
    if (!app) return count('app_secrets', 'gone')
    if (removedAt !== undefined && app.createdAt <= removedAt)
      return count('app_secrets', await apply(tx => tx.apps.remove(id, removedAt)))
    const obsoleteSecrets = await store.replay.countAppSecretsBesides(id, hashes, at)
    if (obsoleteSecrets === 0) count('app_secrets', 'standing')
    else
      count(
        'app_secrets',
        await apply(async tx => (await tx.replay.removeAppSecretsBesides(id, hashes, at)) > 0),
      )
  }

  /**
   * Re-applies the last policies as a whole, since each set of policies was one decision; not if newer ones were set.
   */
  async function replayPolicies({ policies, changed_at: changedAt }: EntryOf<'policies'>): Promise<void> {
    if (((await store.policies.find())?.changedAt ?? 0) >= changedAt) return count('policies', 'standing')
    const outcome = await applyAudited(async tx => {
      if ((await tx.policies.lock()).changedAt >= changedAt) return withoutChanges(false)
      await tx.policies.set(policies, changedAt)
      tx.publish({ type: 'policies.changed' })
      return auditedOutcome(true, POLICIES_REPLAYED)
    })
    count('policies', outcome)
  }

  async function replayAuthorizationWithdrawal(entry: EntryOf<'charge_authorization'>): Promise<void> {
    const { user_id: userId, app_id: appId, revoked_at: revokedAt } = entry
    if (revokedAt === null) return
    const authorization = (await store.billing.authorizations(userId)).find(each => each.appId === appId)
    if (!authorization) count('charge_authorizations', 'gone')
    else if (authorization.revokedAt !== null || authorization.grantedAt > revokedAt)
      count('charge_authorizations', 'standing')
    else
      count(
        'charge_authorizations',
        await apply(async tx => (await tx.replay.withdrawAsOf(userId, appId, revokedAt)) !== null),
      )
  }

  async function replayConsentWithdrawal(entry: EntryOf<'consent'>): Promise<void> {
    const { user_id: userId, app_id: appId, revoked_at: revokedAt } = entry
    if (revokedAt === null) return
    const consent = await store.consents.find(userId, appId)
    if (!consent) count('consents', 'gone')
    else if (consent.revokedAt !== null || consent.grantedAt > revokedAt) count('consents', 'standing')
    else
      count(
        'consents',
        await apply(async tx => (await tx.replay.withdrawConsentAsOf(userId, appId, revokedAt)) !== null),
      )
  }
}

/** Keys per query. */
const BATCH = 500
const POLICIES_REPLAYED: AuditChange = {
  type: 'policies.changed',
  subject: { type: 'policies', id: null, user_id: null },
  before: null,
  after: { replayed: true },
}

function emptyReport(): ReplayReport {
  const counts = REPLAY_KINDS.map(kind => [kind, { found: 0, replayed: 0, standing: 0, gone: 0, left: 0 }])
  return { entries: 0, missing: null, openEnds: [], counts: Object.fromEntries(counts), left: [] }
}
