import type { LedgerEntryObject } from '@keyway/sdk/protocol'
import type { LedgerEntry } from '../billing/ledger.ts'
import { formatMoney } from '../billing/money.ts'
import { toRfc3339 } from '../clock.ts'

export function ledgerEntryObject(entry: LedgerEntry): LedgerEntryObject {
  return {
    id: entry.id,
    kind: entry.kind,
    amount: formatMoney(entry.amount),
    balance_after: formatMoney(entry.balanceAfter),
    app_id: entry.appId,
    key_id: entry.keyId,
    description: entry.description,
    created_at: toRfc3339(entry.createdAt),
  }
}
