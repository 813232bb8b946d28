import { MAX_OVERLAP_SECONDS } from '../api-keys/rotation.ts'
import { type Clock, DAY, HOUR, type Instant, SECOND } from '../clock.ts'
import { NODE_TIMEOUT_MS } from '../hub/presence-store.ts'
import type { Log } from '../log.ts'
import { CODE_WINDOW } from '../magic-links/code-limits.ts'
import { INBOX_KEPT_FOR } from '../mail/inbox.ts'
import { EVENTS_KEPT_FOR } from '../security-events/security-event.ts'
import type { Storage } from '../store.ts'
import { oldestBucketStart } from '../usage/usage.ts'
import type { RetentionStarts } from '../usage/usage-store.ts'
import { MAX_LOGGED } from '../webhooks/webhook.ts'
import { DELIVERIES_KEPT_FOR } from '../webhooks/webhook-event.ts'

/** How long rows are kept after they have ended, as section 10 of the contract promises. */
export const RETENTION = {
  magicLinks: DAY,
  sends: DAY,
  /** Counted from the expiry of a change that was not confirmed. */
  expiredEmailChanges: HOUR,
  /** Longer than the lifetime of a pushed authorization request, which gets no other code while its code has a row. */
  authorizationCodes: DAY,
  /** Counted from the registration of a client to which nobody has consented. */
  unusedClients: 7 * DAY,
  /** Counted from the expiry of an invitation. */
  invitations: 30 * DAY,
  wrongCodes: CODE_WINDOW,
  /** Counted from the expiry of the codes; longer than `KEY_CREATION_WINDOW`, which begins when one is redeemed. */
  deviceAuthorizations: HOUR,
  settledMail: 7 * DAY,
  inboxMail: INBOX_KEPT_FOR,
  endedSessions: 30 * DAY,
  securityEvents: EVENTS_KEPT_FOR,
  /** Counted from the expiry of a key that was not revoked. Revoked keys are kept for as long as the account. */
  expiredKeys: 400 * DAY,
  /** Metadata of expired and revoked keys: keys may be created without limit, so it would accumulate otherwise. */
  metadataOfEndedKeys: 7 * DAY,
  keyAlerts: 400 * DAY,
  /** Counted from the last use of a key from the network. A later use counts as one from a new network. */
  keyNetworks: 90 * DAY,
  /** All tokens of the key expire within this time. Until it ends, an agent with the key gets `api_key_revoked`. */
  keysOfDeletedAccounts: DAY,
  /** Within this time every node stores its last counts for the account. */
  usageOfDeletedAccounts: DAY,
  /**
   * Batch numbers of flushed usage. A node flushes every few seconds; one that was disconnected for longer than this
   * may add its last batch twice.
   */
  usageFlushes: 30 * DAY,
  /**
   * Neither the feed of revocations (20 minutes) nor the hubs' sweep reads older endings. A replay of the journal
   * (failover-replay.ts) needs them to find out whether a key's networks were changed after the entry that it replays.
   */
  endings: HOUR,
  /** Counted from the end of a dead node's lease of its shares. Longer than any window of a request limit (a day). */
  limitHolders: 2 * DAY,
  /** Longer than the overlap in which a replaced key may still use the quota that it shares with its successor. */
  retiredQuotas: MAX_OVERLAP_SECONDS * SECOND + DAY,
  retiredSigningKeys: DAY,
  /** Counted from the time at which the event was delivered, given up or dropped. */
  webhookDeliveries: DELIVERIES_KEPT_FOR,
} as const

/** Rows per statement; small, so that no delete holds locks for long. */
const BATCH = 500
/** A larger backlog is deleted over several rounds. */
const MAX_BATCHES_A_ROUND = 200

export interface Housekeeping {
  /** Runs one round now. Returns the number of deleted rows, without those that `pruneSurplus` removed. */
  run(): Promise<number>
}

export function createHousekeeping({
  storage,
  clock,
  log,
}: {
  storage: Pick<Storage, 'store' | 'transaction'>
  clock: Clock
  log: Log
}): Housekeeping {
  const { store } = storage
  return { run }

  async function run(): Promise<number> {
    const now = clock.now()
    let removedCount = 0
    for (const prune of pruneSteps(now)) removedCount += await pruneInBatches(prune)
    for (let round = 0; round < MAX_BATCHES_A_ROUND; round++)
      if (!(await store.webhookDeliveries.pruneSurplus(MAX_LOGGED, now))) break
    if (removedCount > 0) log.debug({ removed: removedCount }, 'housekeeping')
    return removedCount
  }

  /** Runs in a transaction, which also queues the webhook event `agent.disconnected` of each pruned connection. */
  function prunePresence(batch: number, now: number) {
    return storage.transaction(tx => tx.presence.prune(now - 6 * NODE_TIMEOUT_MS, batch, now))
  }

  function pruneSteps(now: number): ((batch: number) => Promise<number>)[] {
    return [
      batch => store.magicLinks.prune(now - RETENTION.magicLinks, now - RETENTION.sends, batch),
      batch => store.registeredClients.prune(now - RETENTION.unusedClients, batch),
      batch => store.clientAssertions.prune(now, batch),
      batch => store.authorizationCodes.prune(now - RETENTION.authorizationCodes, batch),
      batch => store.emailChanges.prune(now - RETENTION.expiredEmailChanges, batch),
      batch => store.invitations.prune(now - RETENTION.invitations, batch),
      batch => store.wrongCodes.prune(now - RETENTION.wrongCodes, batch),
      batch => store.deviceAuthorizations.prune(now - RETENTION.deviceAuthorizations, batch),
      batch => store.outbox.prune(now - RETENTION.settledMail, batch),
      batch => store.sessions.prune(now - RETENTION.endedSessions, batch),
      batch => store.securityEvents.prune(now - RETENTION.securityEvents, batch),
      batch => store.apiKeys.prune(now - RETENTION.expiredKeys, batch),
      batch => store.apiKeys.pruneOfDeletedOwners(now - RETENTION.keysOfDeletedAccounts, batch),
      batch => store.apiKeys.pruneMetadata(now - RETENTION.metadataOfEndedKeys, batch),
      batch => store.usage.prune(retentionStarts(now), batch),
      batch => store.statistics.prune(retentionStarts(now), batch),
      batch => store.usage.pruneOfDeletedOwners(now - RETENTION.usageOfDeletedAccounts, batch),
      batch => store.usage.pruneFlushes(now - RETENTION.usageFlushes, batch),
      batch => store.quotas.prune(now - RETENTION.retiredQuotas, batch),
      batch => store.limitLeases.prune(now, now - RETENTION.limitHolders, batch),
      batch => store.keyAlerts.prune(now - RETENTION.keyAlerts, now - RETENTION.keyNetworks, batch),
      batch => store.endings.prune(now - RETENTION.endings, batch),
      async batch => (await prunePresence(batch, now)).removed,
      batch => store.webhookDeliveries.prune(now - RETENTION.webhookDeliveries, now, batch),
      batch => store.suppressions.prune(now, batch),
      () => store.inbox.prune(now - RETENTION.inboxMail),
      () => store.signingKeys.prune(now - RETENTION.retiredSigningKeys),
    ]
  }
}

function retentionStarts(now: Instant): RetentionStarts {
  return { hour: oldestBucketStart('hour', now), day: oldestBucketStart('day', now) }
}

async function pruneInBatches(prune: (batch: number) => Promise<number>): Promise<number> {
  let removedCount = 0
  for (let round = 0; round < MAX_BATCHES_A_ROUND; round++) {
    const count = await prune(BATCH)
    removedCount += count
    if (count < BATCH) break
  }
  return removedCount
}
