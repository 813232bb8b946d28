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

/**
 * Maximum number of alerts that wait for the next flush. Beyond it none is added: alerts are informative only. Also the
 * maximum number of flushed alerts that are remembered; at this number all of them are forgotten.
 */
const MAX_ALERTS = 10_000

export interface KeyAlerts {
  /**
   * Notifies the owner if this charge passed 80 or 100 % of a spend limit, or was refused by it. Called in the
   * transaction that books or refuses the charge.
   */
  onSpend(tx: Transaction, spend: KeySpend): Promise<void>
  /**
   * Notes that a key passed 80 or 100 % of a request limit or of its quota. Costs one map lookup, for the hot path. The
   * next flush notifies the owner: for each limit and percentage at most once a day, for a limit per month once a month,
   * and for a quota without refill once.
   */
  noteLimit(key: Pick<ApiKey, 'id' | 'lineageId'>, alert: LimitAlert): void
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
   * The alerts that wait for a flush, by a name of lineage (a key and its successors by rotation), limit, percentage
   * and period; and the names of alerts that were flushed, which are not noted again.
   */
  const pendingAlerts = new Map<string, { keyId: string; alert: LimitAlert; at: Instant }>()
  const flushedAlerts = new Set<string>()

  return {
    async onSpend(tx, spend) {
      for (const per of SPEND_PERIODS) {
        const percent = percentPassed(spend, per)
        if (!percent) continue
        const amounts = { allowed: spend.caps[per]!, used: spentIn(per, spend.spent, spend.at) }
        await raiseAlert(tx, outbox, spend.key, { limit: 'spend', per, percent, ...amounts }, spend.at)
      }
    },

    noteLimit({ id, lineageId }, alert) {
      const at = clock.now()
      const name = `${lineageId} ${kindOf(alert)} ${periodOf(alert, at)}`
      if (flushedAlerts.has(name) || pendingAlerts.size >= MAX_ALERTS) return
      pendingAlerts.set(name, { keyId: id, alert, at })
    },

    async flush() {
      for (const [name, { keyId, alert, at }] of pendingAlerts) {
        await storage.transaction(async tx => {
          const [key] = await tx.apiKeys.findMany([keyId])
          if (key) await raiseAlert(tx, outbox, key, alert, at)
        })
        pendingAlerts.delete(name)
        if (flushedAlerts.size >= MAX_ALERTS) flushedAlerts.clear()
        flushedAlerts.add(name)
      }
    },
  }
}

/**
 * Records a security event and queues a mail to the owner, and at 100 % also announces a webhook event: once per key
 * lineage, limit, percentage and period.
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

/**
 * The number of the calendar month or day (UTC), or 0 for a limit in total. A limit of a shorter window
 * also has the day, so that 80 % and 100 % of it each cause at most one mail a day.
 */
function periodOf({ per }: LimitAlert, at: Instant): number {
  if (per === 'total') return 0
  return per === 'month' ? periodsOf(at).month : periodsOf(at).day
}

/** 100 if this charge reached the cap of `per` or was refused for it, 80 if it reached 80 % of it; otherwise null. */
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
