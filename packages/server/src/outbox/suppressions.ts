import type { Clock } from '../clock.ts'
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
  /** Returns whether there was one. */
  lift(address: EmailAddress): Promise<boolean>
}

export function createSuppressions({
  storage,
  clock,
  log,
}: {
  storage: Pick<Storage, 'store'>
  clock: Clock
  log: Log
}): Suppressions {
  const { suppressions } = storage.store
  return {
    async record({ addresses, reason }, provider) {
      const at = clock.now()
      for (const address of new Set(addresses.map(parseEmailAddress))) {
        if (!address) continue
        await suppressions.record({ address, reason, provider, at, until: at + SUPPRESSED_FOR })
        log.warn({ recipient: maskAddress(address), reason, provider }, 'An address was suppressed.')
      }
    },
    find: address => suppressions.find(address, clock.now()),
    lift: address => suppressions.lift(address),
  }
}
