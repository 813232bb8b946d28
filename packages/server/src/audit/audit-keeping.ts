import { type Clock, DAY } from '../clock.ts'
import type { Log } from '../log.ts'
import type { Secrets } from '../secrets.ts'
import type { Storage } from '../store.ts'
import { isGenuineSeal, type SealKind, sealPosition } from './audit-seal.ts'
import type { SealedPosition } from './audit-store.ts'

/** Retention unless the operator sets another. */
export const DEFAULT_AUDIT_DAYS = 400

export interface AuditKeeping {
  /**
   * Authenticates the head of the chain under `KEYWAY_SECRET` and logs it, so that the log shows what the rows were.
   * Does nothing if the last row is sealed already.
   */
  seal(): Promise<void>
  /** Removes at most `batch` rows that are older than the retention; before, the last of them is sealed. Returns how many. */
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
      const place = sealPosition(secrets, 'head', { sequence, hash })
      await store('head', place)
      log.info({ ...place }, 'audit head')
    },

    async prune(batch) {
      const last = await audit.lastBefore(clock.now() - auditDays * DAY)
      if (last) {
        const place = sealPosition(secrets, 'pruned', last)
        await store('pruned', place)
        log.info({ ...place }, 'audit rows removed')
      }
      return audit.prune(batch)
    },
  }

  /** Stores the place, and announces it by an event so that receivers can compare it later. */
  function store(kind: SealKind, place: SealedPosition): Promise<void> {
    const at = clock.now()
    return storage.transaction(async tx => {
      if (kind === 'head') await tx.audit.seal(place)
      else await tx.audit.markPruned(place)
      const { sequence, hash, mac } = place
      const subject = { type: 'audit', id: 'chain' } as const
      tx.announce({ type: 'audit.recorded', subject, at, data: { kind, sequence, hash, mac } })
    })
  }
}
