import { type Purpose, SealError, type Secrets } from '../secrets.ts'

/** The tables that have sealed values. */
export type SealedPlace =
  | 'signing_keys'
  | 'algorithm_keys'
  | 'sessions'
  | 'messages'
  | 'inbox'
  | 'instance'
  | 'webhook_secrets'

export interface SealedValue {
  /** The row's id, to which the sealed value is bound. */
  id: string
  sealed: string
}

export interface SealedStore {
  /** Values that were sealed with another secret than that of the fingerprint, ordered by id, after `afterId`. */
  sealedWithOtherSecrets(
    place: SealedPlace,
    fingerprint: string,
    afterId: string,
    limit: number,
  ): Promise<SealedValue[]>
  /** Returns false, and writes nothing, if the value was changed or deleted since it was read. */
  replaceSealed(place: SealedPlace, value: SealedValue, resealed: string): Promise<boolean>
}

const PURPOSES: Record<SealedPlace, Purpose> = {
  signing_keys: 'signing-key',
  algorithm_keys: 'signing-key',
  sessions: 'session-secret',
  messages: 'mail',
  inbox: 'inbox',
  instance: 'address-pepper',
  webhook_secrets: 'webhook-secret',
}
/** Values per query. */
const BATCH = 200

export interface ResealReport {
  resealed: number
  /** Rows that no secret of KEYWAY_SECRET opens. */
  unopened: { place: SealedPlace; id: string }[]
}

/**
 * Re-encrypts all sealed values with the first secret while nodes run: each by a conditional update, so that concurrent
 * changes are not overwritten.
 */
export async function resealAll(
  store: SealedStore,
  secrets: Secrets,
  progress: (resealed: number) => void = () => {},
): Promise<ResealReport> {
  const report: ResealReport = { resealed: 0, unopened: [] }
  for (const place of Object.keys(PURPOSES) as SealedPlace[]) {
    let afterId = ''
    for (;;) {
      const values = await store.sealedWithOtherSecrets(place, secrets.fingerprint, afterId, BATCH)
      for (const value of values) await resealOne(place, value)
      progress(report.resealed)
      if (values.length < BATCH) break
      afterId = values.at(-1)!.id
    }
  }
  return report

  async function resealOne(place: SealedPlace, value: SealedValue): Promise<void> {
    const purpose = PURPOSES[place]
    try {
      const plaintext = secrets.open(purpose, value.sealed, value.id)
      if (await store.replaceSealed(place, value, secrets.seal(purpose, plaintext, value.id)))
        report.resealed++
    } catch (error) {
      if (!(error instanceof SealError)) throw error
      report.unopened.push({ place, id: value.id })
    }
  }
}
