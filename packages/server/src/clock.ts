/** Milliseconds since 1970, UTC: how every instant is kept inside. */
export type Instant = number

export const SECOND = 1000
export const MINUTE = 60 * SECOND
export const HOUR = 60 * MINUTE
export const DAY = 24 * HOUR

export interface Clock {
  /** The database's time, as well as this process knows it. Never runs backwards within one process. */
  now(): Instant
}

export interface SynchronizedClock extends Clock {
  /**
   * Measures the distance to the database's clock anew. `readDatabaseClock` is asked three times and the
   * quickest answer wins, since half of its round trip is the error.
   */
  synchronize(readDatabaseClock: () => Promise<Instant>): Promise<void>
  /** Database clock minus this machine's own, in milliseconds; an operator wants to know. */
  readonly skew: number
}

/**
 * Monotonic time plus the measured offset to the database clock. A stepped system clock moves neither
 * limits nor expiry, and nodes on one database agree.
 */
export function createClock(): SynchronizedClock {
  let offset = performance.timeOrigin
  let last = 0
  return {
    now() {
      const instant = Math.floor(performance.now() + offset)
      if (instant > last) last = instant
      return last
    },
    async synchronize(readDatabaseClock) {
      let quickest = Number.POSITIVE_INFINITY
      for (let attempt = 0; attempt < 3; attempt++) {
        const before = performance.now()
        const database = await readDatabaseClock()
        const roundTrip = performance.now() - before
        if (roundTrip >= quickest) continue
        quickest = roundTrip
        offset = database + roundTrip / 2 - performance.now()
      }
    },
    get skew() {
      return Math.round(performance.now() + offset - Date.now())
    },
  }
}

/** `2026-11-20T19:22:00.000Z` */
export function toRfc3339(instant: Instant): string {
  return new Date(instant).toISOString()
}

export function toRfc3339OrNull(instant: Instant | null): string | null {
  return instant === null ? null : toRfc3339(instant)
}

const RFC3339 =
  /^(\d{4})-(\d{2})-(\d{2})[Tt ](\d{2}):(\d{2}):(\d{2})(\.\d{1,9})?(?:[Zz]|([+-])(\d{2}):(\d{2}))$/

/** RFC 3339 writes years in four digits. */
const FIRST_INSTANT = Date.parse('0000-01-01T00:00:00.000Z')
const LAST_INSTANT = Date.parse('9999-12-31T23:59:59.999Z')

/**
 * The instant that an RFC 3339 text with zone names, or null. `Date.parse` alone rolls 30 February over to
 * March, so the calendar fields are compared with what they became.
 */
export function parseRfc3339(text: string): Instant | null {
  const match = RFC3339.exec(text)
  if (!match) return null
  const [, year, month, day, hour, minute, second, fraction, sign, offsetHours, offsetMinutes] = match
  const date = new Date(0)
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day))
  date.setUTCHours(
    Number(hour),
    Number(minute),
    Number(second),
    fraction ? Math.floor(Number(fraction) * 1000) : 0,
  )
  const kept = date.toISOString().slice(0, 19)
  if (kept !== `${year}-${month}-${day}T${hour}:${minute}:${second}`) return null
  if (!sign) return date.getTime()
  if (Number(offsetHours) > 23 || Number(offsetMinutes) > 59) return null
  const offset = (Number(offsetHours) * 60 + Number(offsetMinutes)) * MINUTE
  const instant = date.getTime() - (sign === '-' ? -offset : offset)
  return instant >= FIRST_INSTANT && instant <= LAST_INSTANT ? instant : null
}
