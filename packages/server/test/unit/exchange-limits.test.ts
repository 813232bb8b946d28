import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createExchangeLimits, MAX_REMEMBERED_KEYS } from '../../src/agent-tokens/exchange-limits.ts'
import { DAY, HOUR, MINUTE, SECOND } from '../../src/clock.ts'
import type { KeywayError } from '../../src/errors.ts'
import { newId } from '../../src/ids.ts'
import { type RateWindow, WINDOW_LENGTHS } from '../../src/rate-windows.ts'

function open(windows: RateWindow[], maxKeys?: number) {
  const clock = { at: 1_000_000, now: () => clock.at }
  const limits = createExchangeLimits({ clock, windows, maxKeys })
  /** Returns null if the exchange is allowed, else the seconds to wait. */
  const take = (keyId: string): number | null => {
    try {
      limits.take(keyId)
      return null
    } catch (error) {
      return (error as KeywayError).extras.retryAfter!
    }
  }
  return { clock, limits, take }
}

test('the exchange limit of a key applies per window and key, and a retry after the announced wait succeeds', () => {
  const { clock, take } = open([{ window: 'minute', limit: 600 }])
  for (let count = 0; count < 600; count++) assert.equal(take('a'), null)
  assert.equal(take('a'), 60)
  assert.equal(take('b'), null)
  clock.at += 59_999
  assert.equal(take('a'), 1)
  clock.at += 1
  for (let count = 0; count < 600; count++) assert.equal(take('a'), null)
  assert.equal(take('a'), 60)
})

test('no window contains more exchanges than its limit, and refusals do not extend the wait', () => {
  const windows: RateWindow[] = [
    { window: 'minute', limit: 5 },
    { window: 'hour', limit: 12 },
  ]
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 4 * MINUTE }), { maxLength: 200 }), pauses => {
      const { clock, take } = open(windows)
      const acceptedAt: number[] = []
      for (const pause of pauses) {
        clock.at += pause % 3 === 0 ? pause : pause % SECOND
        const wait = take('a')
        if (wait === null) acceptedAt.push(clock.at)
        else assert.ok(wait >= 1 && wait <= HOUR / SECOND)
      }
      for (const end of acceptedAt) {
        assert.ok(acceptedAt.filter(at => at > end - MINUTE && at <= end).length <= 5)
        assert.ok(acceptedAt.filter(at => at > end - HOUR && at <= end).length <= 12)
      }
    }),
  )
})

test('memory is bounded, and a key in use keeps its count while others are evicted', () => {
  const { limits, take } = open([{ window: 'minute', limit: 600 }], 1000)
  let refusedCount = 0
  for (let other = 0; other < 50_000; other++) {
    take(`other ${other}`)
    if (other % 50 === 0 && take('steady') !== null) refusedCount++
    assert.ok(limits.size <= 1000, `${limits.size} keys`)
  }
  assert.equal(refusedCount, 400, 'of a thousand in one minute six hundred pass')
  assert.equal(MAX_REMEMBERED_KEYS, 50_000)
})

test('each of thousands of keys keeps its own count when records are moved', () => {
  const { take } = open([{ window: 'minute', limit: 2 }], 20_000)
  const ids = Array.from({ length: 9000 }, (_, index) => newId(1_700_000_000_000 + index))
  for (const expected of [null, null, 60]) for (const id of ids) assert.equal(take(id), expected)
})

test('keys whose hashes are half equal are counted apart', () => {
  // Pairs of ids that were found by search: the low halves of the hashes are equal in the first pair, and the high
  // halves in the second, whose hashes also collide in a table of eight elements.
  for (const pair of [
    ['key 57614', 'key 105846'],
    ['key 45357', 'key 301820'],
  ]) {
    const { take } = open([{ window: 'minute', limit: 1 }], 4)
    for (const id of pair) {
      assert.equal(take(id), null, id)
      assert.equal(take(id), 60, id)
    }
  }
})

test('a count that was not read for a month has expired, and stays expired', () => {
  const { clock, take } = open([
    { window: 'minute', limit: 1 },
    { window: 'day', limit: 2 },
  ])
  for (const days of [1, 2, 25, 30, 50, 365]) {
    assert.equal(take('a'), null, `${days} days`)
    assert.equal(take('a'), 60)
    clock.at += MINUTE
    assert.equal(take('a'), null)
    clock.at += MINUTE
    assert.equal(take('a'), (DAY - MINUTE) / SECOND)
    clock.at += days * DAY
  }
})

test('a clock that steps back neither opens a limit nor extends it beyond its window', () => {
  const { clock, take } = open([{ window: 'minute', limit: 2 }])
  assert.equal(take('a'), null)
  clock.at -= HOUR
  assert.equal(take('a'), null)
  assert.equal(take('a'), 60)
  clock.at += HOUR + MINUTE - 1
  assert.equal(take('a'), 1)
  clock.at += 1
  assert.equal(take('a'), null)
})

test('a refusal says how long to wait, within which window, and which setting limits it', () => {
  const { clock, limits } = open([
    { window: 'minute', limit: 1 },
    { window: 'hour', limit: 2 },
  ])
  const refusal = (wait: number, window: string, seconds: string) => ({
    code: 'rate_limited',
    message: `This key was exchanged too often within this ${window}. A token works for 15 minutes: keep it. Try again in ${wait} ${seconds}.`,
    extras: { retryAfter: wait, window, setting: 'KEYWAY_EXCHANGE_LIMITS' },
  })
  limits.take('a')
  assert.throws(() => limits.take('a'), refusal(60, 'minute', 'seconds'))
  clock.at += 59 * SECOND
  assert.throws(() => limits.take('a'), refusal(1, 'minute', 'second'))
  clock.at += SECOND
  limits.take('a')
  clock.at += SECOND
  // Both exchanges are in one slot of the hour, and a slot counts until its latest exchange leaves the window.
  assert.throws(() => limits.take('a'), refusal(3599, 'hour', 'seconds'))
})

/** A reference model of the exchange limits, with lists and maps instead of typed arrays. */
function createModel(windows: RateWindow[], maxKeys: number) {
  interface Slot {
    began: number
    latest: number
    count: number
  }
  const longestWindow = Math.max(0, ...windows.map(({ window }) => WINDOW_LENGTHS[window]))
  const capacity = Math.floor(maxKeys / 2)
  let current = new Map<string, Slot[][]>()
  let previous = new Map<string, Slot[][]>()
  let rotatedAt: number | null = null

  function slotsOf(keyId: string, now: number): Slot[][] {
    if (now - rotatedAt! >= 2 * longestWindow) current = new Map()
    if (now - rotatedAt! >= longestWindow) rotate(now)
    const existingSlots = current.get(keyId)
    if (existingSlots) return existingSlots
    if (current.size === capacity) rotate(now)
    const slots = previous.get(keyId) ?? windows.map(() => [])
    previous.delete(keyId)
    current.set(keyId, slots)
    return slots
  }

  function rotate(now: number): void {
    previous = current
    current = new Map()
    rotatedAt = now
  }

  return {
    get size() {
      return current.size + previous.size
    },
    /** Returns null if the exchange is allowed, else the seconds to wait. */
    take(keyId: string, now: number): number | null {
      rotatedAt ??= now
      const slots = slotsOf(keyId, now)
      let longestWait = 0
      for (const [index, { window, limit }] of windows.entries()) {
        const length = WINDOW_LENGTHS[window]
        const currentSlots = slots[index]!
        while (currentSlots.length > 0 && now - currentSlots[0]!.latest >= length) currentSlots.shift()
        const count = currentSlots.reduce((sum, slot) => sum + slot.count, 0)
        if (count >= limit) longestWait = Math.max(longestWait, currentSlots[0]!.latest + length - now)
      }
      if (longestWait > 0) return Math.ceil(longestWait / SECOND)
      for (const [index, { window }] of windows.entries()) {
        const newestSlot = slots[index]!.at(-1)
        if (newestSlot && now - newestSlot.began < WINDOW_LENGTHS[window] / 12) {
          newestSlot.latest = Math.max(newestSlot.latest, now)
          newestSlot.count++
        } else slots[index]!.push({ began: now, latest: now, count: 1 })
      }
      return null
    },
  }
}

test('counts in one typed array equal those in lists, for any keys, pauses, windows and evictions', () => {
  const windows: RateWindow[][] = [
    [{ window: 'minute', limit: 3 }],
    [
      { window: 'minute', limit: 20 },
      { window: 'hour', limit: 45 },
    ],
    [
      { window: 'hour', limit: 30 },
      { window: 'minute', limit: 14 },
      { window: 'day', limit: 60 },
    ],
  ]
  const pauses = [0, 1, 700, 4_999, 5_000, 5_001, 60_000, 299_999, 300_000, HOUR, 2 * HOUR, DAY, 3 * DAY]
  // Mostly short pauses, so that windows fill.
  const pause = fc.oneof(
    { weight: 12, arbitrary: fc.constantFrom(...pauses.slice(0, 4)) },
    { weight: 3, arbitrary: fc.constantFrom(...pauses.slice(4, 9)) },
    { weight: 1, arbitrary: fc.constantFrom(...pauses.slice(9)) },
  )
  const ids = Array.from({ length: 9 }, (_, index) => newId(1_700_000_000_000 + index))
  const step = fc.record({ key: fc.constantFrom(...ids, ids[0]!, ids[0]!, ids[0]!), pause })
  const anyMaxKeys = fc.constantFrom(2, 6, 7, 40)
  fc.assert(
    fc.property(
      fc.constantFrom(...windows),
      anyMaxKeys,
      fc.array(step, { minLength: 60, maxLength: 400, size: 'max' }),
      (chosen, maxKeys, steps) => {
        const { clock, limits, take } = open(chosen, maxKeys)
        const model = createModel(chosen, maxKeys)
        // Begins at an instant that does not fit into 32 bits, since `KeyCounts` stores instants modulo 2^32.
        clock.at = 1_800_000_000_000
        model.take('first', clock.at)
        take('first')
        for (const { key, pause } of steps) {
          clock.at += pause
          assert.equal(take(key), model.take(key, clock.at))
          assert.equal(limits.size, model.size)
        }
      },
    ),
    { numRuns: 200 },
  )
})

test('a key without exchanges for two windows is evicted by the next exchange of another key', () => {
  const { clock, limits, take } = open([{ window: 'minute', limit: 600 }])
  for (let key = 0; key < 1000; key++) take(`key ${key}`)
  clock.at += MINUTE
  take('one')
  clock.at += MINUTE
  take('one')
  assert.equal(limits.size, 1)
})
