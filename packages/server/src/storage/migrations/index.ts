import type { Migration } from './migration.ts'

/** All migrations, for both engines, in the order of their numbers. A new one goes to the end. */
export const MIGRATIONS: readonly Migration[] = [
  whenApplied('0001-first', async () => (await import('./0001-first.ts')).first),
  whenApplied(
    '0002-key-notices-and-suppressions',
    async () => (await import('./0002-key-notices-and-suppressions.ts')).keyNoticesAndSuppressions,
  ),
  whenApplied('0003-lease-owner', async () => (await import('./0003-lease-owner.ts')).leaseOwner),
  whenApplied('0004-ledger-stays', async () => (await import('./0004-ledger-stays.ts')).ledgerStays),
  whenApplied(
    '0005-users-not-active',
    async () => (await import('./0005-users-not-active.ts')).usersNotActive,
  ),
  whenApplied('0006-wrong-codes', async () => (await import('./0006-wrong-codes.ts')).wrongCodes),
  whenApplied('0007-key-lists', async () => (await import('./0007-key-lists.ts')).keyLists),
  whenApplied('0008-nodes-that-seal', async () => (await import('./0008-nodes-that-seal.ts')).nodesThatSeal),
  whenApplied('0009-apps-cover-from', async () => (await import('./0009-apps-cover-from.ts')).appsCoverFrom),
  whenApplied(
    '0010-keys-of-deleted-accounts',
    async () => (await import('./0010-keys-of-deleted-accounts.ts')).keysOfDeletedAccounts,
  ),
  whenApplied('0011-usage', async () => (await import('./0011-usage.ts')).usage),
  whenApplied('0012-limits', async () => (await import('./0012-limits.ts')).limits),
  whenApplied('0013-key-metadata', async () => (await import('./0013-key-metadata.ts')).keyMetadata),
  whenApplied('0014-limit-leases', async () => (await import('./0014-limit-leases.ts')).limitLeases),
  whenApplied('0015-key-spend', async () => (await import('./0015-key-spend.ts')).keySpend),
  whenApplied('0016-key-alerts', async () => (await import('./0016-key-alerts.ts')).keyAlerts),
  whenApplied('0017-oauth-clients', async () => (await import('./0017-oauth-clients.ts')).oauthClients),
  whenApplied(
    '0018-sign-in-for-apps',
    async () => (await import('./0018-sign-in-for-apps.ts')).signInForApps,
  ),
  whenApplied(
    '0019-device-authorizations',
    async () => (await import('./0019-device-authorizations.ts')).deviceAuthorizations,
  ),
  whenApplied('0020-administration', async () => (await import('./0020-administration.ts')).administration),
  whenApplied(
    '0021-administrative-lists',
    async () => (await import('./0021-administrative-lists.ts')).administrativeLists,
  ),
  whenApplied('0022-webhooks', async () => (await import('./0022-webhooks.ts')).webhooks),
  whenApplied('0024-policies', async () => (await import('./0024-policies.ts')).policies),
  whenApplied('0025-invitations', async () => (await import('./0025-invitations.ts')).invitations),
  whenApplied('0026-imports', async () => (await import('./0026-imports.ts')).imports),
  whenApplied('0028-statistics', async () => (await import('./0028-statistics.ts')).statistics),
  whenApplied('0029-address-parts', async () => (await import('./0029-address-parts.ts')).addressParts),
  whenApplied('0031-relay-version', async () => (await import('./0031-relay-version.ts')).relayVersion),
  whenApplied('0032-user-nodes', async () => (await import('./0032-user-nodes.ts')).userNodes),
  whenApplied('0033-account-changes', async () => (await import('./0033-account-changes.ts')).accountChanges),
  whenApplied(
    '0034-security-event-lists',
    async () => (await import('./0034-security-event-lists.ts')).securityEventLists,
  ),
  whenApplied('0036-locales', async () => (await import('./0036-locales.ts')).locales),
  whenApplied('0037-bounded-reads', async () => (await import('./0037-bounded-reads.ts')).boundedReads),
]

/**
 * The oldest version that may use a database with all of these migrations. Migrations only add, so it is the minor
 * version before the one that ships the newest of them; nothing is released before 0.1.0.
 */
export const OLDEST_READER = '0.1.0'

/** A migration whose code is loaded only when it is applied, since most starts of the service apply none. */
function whenApplied(name: string, load: () => Promise<Migration>): Migration {
  return { name, up: async context => (await load()).up(context) }
}
