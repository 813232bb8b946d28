import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createExchangeLimits, MAX_REMEMBERED_KEYS } from '../../src/agent-tokens/exchange-limits.ts'
import { DAY, HOUR, MINUTE, SECOND } from '../../src/clock.ts'
import type { KeywayError } from '../../src/errors.ts'
import { newId } from '../../src/ids.ts'
import type { RateWindow } from '../../src/rate-windows.ts'

function open(windows: RateWindow[], maxKeys?: number) {
  const clock = { at: 1_000_000, now: () => clock.at }
  const limits = createExchangeLimits({ clock, windows, maxKeys })
  /** Returns null, or the seconds to wait. */
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
      const passed: number[] = []
      for (const pause of pauses) {
        clock.at += pause % 3 === 0 ? pause : pause % SECOND
        const wait = take('a')
        if (wait === null) passed.push(clock.at)
        else assert.ok(wait >= 1 && wait <= HOUR / SECOND)
      }
      for (const end of passed) {
        assert.ok(passed.filter(at => at > end - MINUTE && at <= end).length <= 5)
        assert.ok(passed.filter(at => at > end - HOUR && at <= end).length <= 12)
      }
    }),
  )
})

test('memory is bounded, and a key in use keeps its count while others are evicted', () => {
  const { limits, take } = open([{ window: 'minute', limit: 600 }], 1000)
  let refused = 0
  for (let other = 0; other < 50_000; other++) {
    take(`other ${other}`)
    if (other % 50 === 0 && take('steady') !== null) refused++
    assert.ok(limits.size <= 1000, `${limits.size} keys`)
  }
  assert.equal(refused, 400, 'of a thousand in one minute six hundred pass')
  assert.equal(MAX_REMEMBERED_KEYS, 50_000)
})

test('each of thousands of keys keeps its own count when records are moved', () => {
  const { take } = open([{ window: 'minute', limit: 2 }], 20_000)
  const ids = Array.from({ length: 9000 }, (_, index) => newId(1_700_000_000_000 + index))
  for (const expected of [null, null, 60]) for (const id of ids) assert.equal(take(id), expected)
})

test('a count that was not read for a month has expired, and is not revived', () => {
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
  clock.at += HOUR + MINUTE
  assert.equal(take('a'), null)
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
