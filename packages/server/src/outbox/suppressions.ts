import { type ActedBy, type Audit, auditedOutcome, withoutChanges } from '../audit/audit.ts'
import { type Clock, toRfc3339 } from '../clock.ts'
import { newId } from '../ids.ts'
import { type Log, maskAddress } from '../log.ts'
import type { Storage } from '../store.ts'
import { type EmailAddress, parseEmailAddress } from '../users/email-address.ts'
import type { HookProvider } from './mail-hook.ts'
import { SUPPRESSED_FOR, type Suppression, type SuppressionReason } from './suppression.ts'

export interface Suppressions {
  /** Suppresses mail to these addresses for SUPPRESSED_FOR. Invalid addresses are ignored. */
  record(
    report: { addresses: readonly string[]; reason: SuppressionReason },
    provider: HookProvider,
  ): Promise<void>
  find(address: EmailAddress): Promise<Suppression | null>
  /** Lifts a suppression. Returns false if there was none. */
  lift(address: EmailAddress, by: ActedBy): Promise<boolean>
}

export function createSuppressions({
  storage,
  audit,
  clock,
  log,
}: {
  storage: Pick<Storage, 'store' | 'transaction'>
  audit: Audit
  clock: Clock
  log: Log
}): Suppressions {
  const { suppressions } = storage.store
  return {
    async record({ addresses, reason }, provider) {
      const at = clock.now()
      for (const address of new Set(addresses.map(parseEmailAddress))) {
        if (!address) continue
        const until = at + SUPPRESSED_FOR
        // The id of the event's subject if no account has the address. Created before the transaction, since that may
        // be retried.
        const fallbackSubjectId = newId(at)
        await storage.transaction(async tx => {
          await tx.suppressions.record({ address, reason, provider, at, until })
          const userId = (await tx.users.findByEmail(address))?.id ?? null
          tx.announce({
            type: 'mail.bounced',
            subject: { type: 'mail', id: userId ?? fallbackSubjectId },
            at,
            data: { user_id: userId, reason, provider, suppressed_until: toRfc3339(until) },
          })
        })
        log.warn({ recipient: maskAddress(address), reason, provider }, 'An address was suppressed.')
      }
    },
    find: address => suppressions.find(address, clock.now()),
    async lift(address, by) {
      const userId = (await storage.store.users.findByEmail(address))?.id ?? null
      return audit.perform(by, async tx => {
        if (!(await tx.suppressions.lift(address))) return withoutChanges(false)
        const subject = { type: 'address' as const, id: null, user_id: userId }
        return auditedOutcome(true, { type: 'suppression.lifted', subject, before: null, after: null })
      })
    },
  }
}
