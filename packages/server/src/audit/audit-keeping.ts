import { type Clock, DAY } from '../clock.ts'
import type { Log } from '../log.ts'
import type { Secrets } from '../secrets.ts'
import type { Storage } from '../store.ts'
import { isGenuineSeal, type SealKind, sealPosition } from './audit-seal.ts'
import type { SealedPosition } from './audit-store.ts'

/** Default of the setting for how many days audit rows are retained. */
export const DEFAULT_AUDIT_DAYS = 400

export interface AuditKeeping {
  /**
   * Authenticates the head of the chain by a MAC under `KEYWAY_SECRET`, stores and logs it: rows that were changed
   * later no longer match what the log shows. Does nothing if there is no row, or the last one is sealed with the
   * current secret already.
   */
  seal(): Promise<void>
  /** Seals the last row that is older than the retention, then removes at most `batch` such rows. Returns how many. */
  prune(batch: number): Promise<number>
}

export function createAuditKeeping({
  storage,
  clock,
  secrets,
  log,
  auditDays,
}: {
  storage: Pick<Storage, 'store' | 'transaction'>
  clock: Clock
  secrets: Secrets
  log: Log
  auditDays: number
}): AuditKeeping {
  const { audit } = storage.store

  return {
    async seal() {
      const { sequence, hash, sealed } = await audit.chain()
      if (sequence === 0) return
      const isSealed = sealed?.sequence === sequence && isGenuineSeal(secrets, 'head', sealed)
      if (isSealed && secrets.isCurrent(sealed.mac)) return
      const position = sealPosition(secrets, 'head', { sequence, hash })
      await storeSeal('head', position)
      log.info({ ...position }, 'audit head')
    },

    async prune(batch) {
      const lastRow = await audit.lastBefore(clock.now() - auditDays * DAY)
      if (lastRow) {
        const position = sealPosition(secrets, 'pruned', lastRow)
        await storeSeal('pruned', position)
        log.info({ ...position }, 'audit rows removed')
      }
      return audit.prune(batch)
    },
  }

  /** Stores the sealed position, and announces it to webhooks: receivers can later compare the rows with it. */
  function storeSeal(kind: SealKind, position: SealedPosition): Promise<void> {
    const at = clock.now()
    return storage.transaction(async tx => {
      if (kind === 'head') await tx.audit.seal(position)
      else await tx.audit.markPruned(position)
      const { sequence, hash, mac } = position
      const subject = { type: 'audit', id: 'chain' } as const
      tx.announce({ type: 'audit.recorded', subject, at, data: { kind, sequence, hash, mac } })
    })
  }
}
