import { uptime } from 'node:os'

/** Milliseconds since 1970, UTC. */
export type Instant = number

export const SECOND = 1000
export const MINUTE = 60 * SECOND
export const HOUR = 60 * MINUTE
export const DAY = 24 * HOUR

export interface Clock {
  /** The service's time. Never runs backwards and never stops within one process. */
  now(): Instant
}

/** The clocks of this machine, in milliseconds. */
export interface MachineClocks {
  /** Never stepped; may stand still while the machine is suspended. */
  monotonic(): number
  /** The time of day, which an operator or a time service may step. */
  system(): Instant
  /** Never stepped, and goes on while the machine is suspended; may have a resolution of a second. */
  uptime(): number
}

/** How fast the clock follows its reference, as a fraction of elapsed time. */
interface SlewRates {
  forward: number | typeof AT_ONCE
  /** Below 1, so that the clock never stops and never runs backwards. */
  backward: number
}

/**
 * - `database`: several nodes share the clock of one database and must agree, so a step forward is applied at once,
 *   and a step back by running at half speed.
 * - `system`: a single process, whose reference is the system's clock. While running it only follows the drift that a
 *   time service corrects by slewing (adjtime(3) and chronyd(8) assume 500 ppm for hardware); a step is applied at
 *   the next start.
 */
export type ClockReference = 'database' | 'system'

const AT_ONCE = 'at once'

const SLEW_RATES: Record<ClockReference, SlewRates> = {
  database: { forward: AT_ONCE, backward: 0.5 },
  system: { forward: 500e-6, backward: 500e-6 },
}

/** A larger distance from the reference means that the reference was stepped, which is reported to the operator. */
export const STEP_THRESHOLD = SECOND
/** Shorter suspensions cannot be distinguished from the resolution of `uptime`. */
const MIN_SUSPENSION = 5 * SECOND
const MEASUREMENT_COUNT = 3

export interface SynchronizedClock extends Clock {
  /**
   * Measures the offset from the reference and begins to follow it. Calls `readReference` three times and uses the
   * fastest answer. Since the reference was read at an unknown moment between call and answer, only a range of times is
   * known: a clock outside it moves to its nearer end, one within it stays. The first `synchronize` sets the clock.
   */
  synchronize(readReference: () => Promise<Instant>): Promise<void>
  /**
   * The correction that is not applied yet: reference minus this clock, in milliseconds. If it is larger than
   * STEP_THRESHOLD, the reference was stepped.
   */
  readonly remainingOffset: number
  /** This clock minus the system's, in milliseconds. */
  readonly skew: number
}

/**
 * Monotonic time plus an offset to the reference. A stepped system clock affects neither limits nor expiry, and nodes
 * on one database agree. The time for which the machine was suspended is added by the first `synchronize` afterwards.
 */
export function createClock(
  reference: ClockReference = 'system',
  machine: MachineClocks = thisMachine,
): SynchronizedClock {
  const rates = SLEW_RATES[reference]
  let offset = machine.system() - machine.monotonic()
  let target = offset
  let slewedAt = machine.monotonic()
  /** Uptime minus monotonic time; the difference grows by the length of each suspension of the machine. */
  let uptimeLead = machine.uptime() - slewedAt
  let isSynchronized = false
  let latestInstant = 0

  return {
    now() {
      const instant = Math.floor(slew() + offset)
      if (instant > latestInstant) latestInstant = instant
      return latestInstant
    },
    async synchronize(readReference) {
      const offsetRange = await measure(readReference)
      addSuspension()
      slew()
      if (isSynchronized) {
        target = Math.min(Math.max(offset, offsetRange.earliest), offsetRange.latest)
      } else {
        offset = (offsetRange.earliest + offsetRange.latest) / 2
        target = offset
        isSynchronized = true
      }
      slew()
    },
    get remainingOffset() {
      slew()
      return Math.round(target - offset)
    },
    get skew() {
      return Math.round(slew() + offset - machine.system())
    },
  }

  /**
   * Moves the offset towards its target as far as the slew rate allows since the last call; returns the monotonic
   * time.
   */
  function slew(): number {
    const monotonic = machine.monotonic()
    const elapsed = monotonic - slewedAt
    slewedAt = monotonic
    if (target < offset) offset = Math.max(target, offset - elapsed * rates.backward)
    else if (rates.forward === AT_ONCE) offset = target
    else offset = Math.min(target, offset + elapsed * rates.forward)
    return monotonic
  }

  /**
   * The range in which the offset lies, by the fastest of several answers. Its end allows for a reference whose time is
   * truncated to milliseconds.
   */
  async function measure(read: () => Promise<Instant>): Promise<{ earliest: number; latest: number }> {
    let narrowestInterval = { earliest: Number.NEGATIVE_INFINITY, latest: Number.POSITIVE_INFINITY }
    for (let attempt = 0; attempt < MEASUREMENT_COUNT; attempt++) {
      const requestedAt = machine.monotonic()
      const instant = await read()
      const interval = { earliest: instant - machine.monotonic(), latest: instant + 1 - requestedAt }
      if (interval.latest - interval.earliest < narrowestInterval.latest - narrowestInterval.earliest)
        narrowestInterval = interval
    }
    return narrowestInterval
  }

  function addSuspension(): void {
    const newLead = machine.uptime() - machine.monotonic()
    const suspension = newLead - uptimeLead
    // Updated even after a suspension that is too short to count: on some systems the two clocks drift apart, by
    // seconds in months.
    uptimeLead = newLead
    if (suspension < MIN_SUSPENSION) return
    offset += suspension
    target += suspension
  }
}

const thisMachine: MachineClocks = {
  monotonic: () => performance.now(),
  system: () => Date.now(),
  uptime: () => uptime() * SECOND,
}

/** Formats an instant in UTC, with milliseconds: `2026-11-20T19:22:00.000Z`. */
export function toRfc3339(instant: Instant): string {
  return new Date(instant).toISOString()
}

export function toRfc3339OrNull(instant: Instant | null): string | null {
  return instant === null ? null : toRfc3339(instant)
}

const RFC3339 =
  /^(\d{4})-(\d{2})-(\d{2})[Tt ](\d{2}):(\d{2}):(\d{2})(\.\d{1,9})?(?:[Zz]|([+-])(\d{2}):(\d{2}))$/

/** The range of RFC 3339, whose years have four digits; a zone offset could lead out of it. */
const FIRST_INSTANT = Date.parse('0000-01-01T00:00:00.000Z')
const LAST_INSTANT = Date.parse('9999-12-31T23:59:59.999Z')

/**
 * Parses an RFC 3339 date-time with a zone; null if invalid. `Date.parse` accepts 30 February as 2 March, so the
 * fields of the result are compared with the text.
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
  const normalized = date.toISOString().slice(0, 19)
  if (normalized !== `${year}-${month}-${day}T${hour}:${minute}:${second}`) return null
  if (!sign) return date.getTime()
  if (Number(offsetHours) > 23 || Number(offsetMinutes) > 59) return null
  const offset = (Number(offsetHours) * 60 + Number(offsetMinutes)) * MINUTE
  const instant = date.getTime() - (sign === '-' ? -offset : offset)
  return instant >= FIRST_INSTANT && instant <= LAST_INSTANT ? instant : null
}
