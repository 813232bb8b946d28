import { first } from './0001-first.ts'
import { keyNoticesAndSuppressions } from './0002-key-notices-and-suppressions.ts'
import { leaseOwner } from './0003-lease-owner.ts'
import { ledgerStays } from './0004-ledger-stays.ts'
import { usersNotActive } from './0005-users-not-active.ts'
import { wrongCodes } from './0006-wrong-codes.ts'
import { keyLists } from './0007-key-lists.ts'
import { nodesThatSeal } from './0008-nodes-that-seal.ts'
import { appsCoverFrom } from './0009-apps-cover-from.ts'
import { keysOfDeletedAccounts } from './0010-keys-of-deleted-accounts.ts'
import { usage } from './0011-usage.ts'
import { limits } from './0012-limits.ts'
import { keyMetadata } from './0013-key-metadata.ts'
import { limitLeases } from './0014-limit-leases.ts'
import { keySpend } from './0015-key-spend.ts'
import { keyAlerts } from './0016-key-alerts.ts'
import { oauthClients } from './0017-oauth-clients.ts'
import { signInForApps } from './0018-sign-in-for-apps.ts'
import { deviceAuthorizations } from './0019-device-authorizations.ts'
import { administration } from './0020-administration.ts'
import { administrativeLists } from './0021-administrative-lists.ts'
import type { Migration } from './migration.ts'

/** All migrations, for both engines. Append only. */
export const MIGRATIONS: readonly Migration[] = [
  first,
  keyNoticesAndSuppressions,
  leaseOwner,
  ledgerStays,
  usersNotActive,
  wrongCodes,
  keyLists,
  nodesThatSeal,
  appsCoverFrom,
  keysOfDeletedAccounts,
  usage,
  limits,
  keyMetadata,
  limitLeases,
  keySpend,
  keyAlerts,
  oauthClients,
  signInForApps,
  deviceAuthorizations,
  administration,
  administrativeLists,
]

/** The oldest version that can use a database with all of these: one minor version back, since migrations only add. */
export const OLDEST_READER = '0.1.0'
