import type { MicroDollars } from '../billing/money.ts'
import { type KeySpend, periodsOf, spentIn } from '../billing/spend.ts'
import type { Clock, Instant } from '../clock.ts'
import { keyEvent } from '../endings/webhook-events.ts'
import { newId } from '../ids.ts'
import { type RefillPeriod, type RequestWindow, SPEND_PERIODS, type SpendPeriod } from '../limits/limit.ts'
import type { Outbox } from '../outbox/outbox.ts'
import { securityEvent } from '../security-events/security-event.ts'
import type { Storage, Transaction } from '../store.ts'
import type { ApiKey } from './api-key.ts'
import { mailOwner } from './mail-owner.ts'

/** Percent of a limit at which the owner is notified. */
export type AlertPercent = 80 | 100

/** An alert that a key passed 80 or 100 % of a limit. A quota without a refill has the period `total`. */
export interface LimitAlert {
  limit: 'spend' | 'requests' | 'quota'
  per: RequestWindow | RefillPeriod | SpendPeriod
  percent: AlertPercent
  /** Calls, or micro-dollars. */
  allowed: number
  /** How much of the limit was used; absent if that is not known. */
  used?: number
}

/** Maximum number of alerts that wait for the next flush. Beyond it none is added: alerts are informative only. */
const MAX_NOTED = 10_000

export interface KeyAlerts {
  /** Called by a charge, in its transaction. */
  onSpend(tx: Transaction, spend: KeySpend): Promise<void>
  /**
   * Notes that a key passed 80 or 100 % of its requests or quota. One map lookup, for the hot path. The
   * owner is notified with the next flush, once per period, which is a day at least.
   */
  noteLimit(key: Pick<ApiKey, 'id' | 'lineageId'>, alert: LimitAlert): void
  /** Notifies the owners of keys about the noted alerts. */
  flush(): Promise<void>
}

export function createKeyAlerts({
  storage,
  clock,
  outbox,
}: {
  storage: Storage
  clock: Clock
  outbox: Outbox
}): KeyAlerts {
  /**
   * Alerts by lineage, limit and period: those that wait for a flush, and those that were flushed and are not raised
   * again.
   */
  const noted = new Map<string, { keyId: string; alert: LimitAlert; at: Instant }>()
  const flushed = new Set<string>()

  return {
    async onSpend(tx, spend) {
      for (const per of SPEND_PERIODS) {
        const percent = percentPassed(spend, per)
        if (!percent) continue
        const sums = { allowed: spend.caps[per]!, used: spentIn(per, spend.spent, spend.at) }
        await raiseAlert(tx, outbox, spend.key, { limit: 'spend', per, percent, ...sums }, spend.at)
      }
    },

    noteLimit({ id, lineageId }, alert) {
      const at = clock.now()
      const name = `${lineageId} ${kindOf(alert)} ${periodOf(alert, at)}`
      if (flushed.has(name) || noted.size >= MAX_NOTED) return
      noted.set(name, { keyId: id, alert, at })
    },

    async flush() {
      for (const [name, { keyId, alert, at }] of noted) {
        await storage.transaction(async tx => {
          const [key] = await tx.apiKeys.findMany([keyId])
          if (key) await raiseAlert(tx, outbox, key, alert, at)
        })
        noted.delete(name)
        if (flushed.size >= MAX_NOTED) flushed.clear()
        flushed.add(name)
      }
    },
  }
}

/**
 * Records a security event and queues a mail to the owner, once per key lineage, limit and period. All alerts about
 * limits pass here, within the transaction that detected them.
 */
async function raiseAlert(
  tx: Transaction,
  outbox: Outbox,
  key: Omit<ApiKey, 'lastUsedFrom'>,
  alert: LimitAlert,
  at: Instant,
): Promise<void> {
  if (!(await tx.keyAlerts.claim(key.lineageId, kindOf(alert), periodOf(alert, at), at))) return
  const type = alert.percent === 100 ? 'api_key_limit_reached' : 'api_key_limit_near'
  await tx.securityEvents.insert(securityEvent(type, key.userId, at, null, { keyId: key.id }))
  const { limit, per } = alert
  if (alert.percent === 100)
    tx.announce(keyEvent('api_key.limit_reached', key.id, key.userId, at, { limit, per }))
  const about = { kind: 'api_key_limit' as const, at, ...alert }
  await mailOwner(tx, outbox, key, { id: newId(at), now: at, about })
}

function kindOf({ limit, per, percent }: LimitAlert): string {
  return `${limit}_${per}_${percent}`
}

/** The calendar day or month (UTC). For shorter windows the day, so that an owner gets at most one mail a day. */
function periodOf({ per }: LimitAlert, at: Instant): number {
  if (per === 'total') return 0
  return per === 'month' ? periodsOf(at).month : periodsOf(at).day
}

/** The highest share of the limit that this charge passed, or was refused for. */
function percentPassed(
  { caps, spent, amount, refusedBy, at }: KeySpend,
  per: SpendPeriod,
): AlertPercent | null {
  const cap = caps[per]
  if (cap === null) return null
  if (refusedBy === per) return 100
  const total = spentIn(per, spent, at)
  const passes = (threshold: MicroDollars) => total >= threshold && total - amount < threshold
  if (passes(cap)) return 100
  return passes(Math.ceil((cap * 4) / 5)) ? 80 : null
}
