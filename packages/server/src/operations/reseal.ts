import { type Purpose, SealError, type Secrets } from '../secrets.ts'

/** Where sealed values are kept. */
export type SealedPlace = 'signing_keys' | 'sessions' | 'messages' | 'inbox' | 'instance'

export interface SealedValue {
  /** The row's id, to which the sealed value is bound. */
  id: string
  sealed: string
}

export interface SealedStore {
  /** Values that another secret than this one sealed, in the order of their ids, after `afterId`. */
  sealedByOthers(
    place: SealedPlace,
    fingerprint: string,
    afterId: string,
    limit: number,
  ): Promise<SealedValue[]>
  /** False where the value has changed or gone since it was read. */
  replaceSealed(place: SealedPlace, value: SealedValue, resealed: string): Promise<boolean>
}

const PURPOSES: Record<SealedPlace, Purpose> = {
  signing_keys: 'signing-key',
  sessions: 'session-secret',
  messages: 'mail',
  inbox: 'inbox',
  instance: 'address-pepper',
}
/** Small, so that a serving node never waits for it. */
const BATCH = 200

export interface ResealReport {
  resealed: number
  /** Rows whose secret is not listed any more. */
  unopened: { place: SealedPlace; id: string }[]
}

/**
 * Rewraps everything under the first secret, while others serve: each value by a conditional update, so that
 * what changes meanwhile is not overwritten.
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
      const values = await store.sealedByOthers(place, secrets.fingerprint, afterId, BATCH)
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
      const opened = secrets.open(purpose, value.sealed, value.id)
      if (await store.replaceSealed(place, value, secrets.seal(purpose, opened, value.id))) report.resealed++
    } catch (error) {
      if (!(error instanceof SealError)) throw error
      report.unopened.push({ place, id: value.id })
    }
  }
}
