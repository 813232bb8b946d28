import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createClock, DAY, HOUR, parseRfc3339, toRfc3339 } from '../../src/clock.ts'

test('an instant is written in UTC with milliseconds', () => {
  assert.equal(toRfc3339(Date.UTC(2026, 10, 20, 19, 22)), '2026-11-20T19:22:00.000Z')
})

test('what is written is read back as the same instant', () => {
  const instant = fc.integer({ min: Date.UTC(1, 0), max: Date.UTC(9999, 11, 31) })
  fc.assert(fc.property(instant, at => assert.equal(parseRfc3339(toRfc3339(at)), at)))
})

test('KEY-14: an offset keeps the instant', () => {
  const midnight = Date.UTC(2030, 0, 1)
  for (const text of [
    '2030-01-01T00:00:00Z',
    '2030-01-01t00:00:00z',
    '2030-01-01 00:00:00Z',
    '2030-01-01T00:00:00.000Z',
    '2030-01-01T05:30:00+05:30',
    '2029-12-31T16:00:00-08:00',
    '2030-01-01T00:00:00-00:00',
  ]) {
    assert.equal(parseRfc3339(text), midnight, text)
  }
})

test('KEY-12: a day that does not exist is refused, and one that exists is not', () => {
  for (const text of [
    '2030-02-30T00:00:00Z',
    '2030-02-29T00:00:00Z',
    '2100-02-29T00:00:00Z',
    '2030-04-31T00:00:00Z',
  ]) {
    assert.equal(parseRfc3339(text), null, text)
  }
  assert.equal(parseRfc3339('2028-02-29T00:00:00Z'), Date.UTC(2028, 1, 29))
  assert.equal(parseRfc3339('2000-02-29T00:00:00Z'), Date.UTC(2000, 1, 29))
})

test('an instant that could not be written back in four digits of a year is refused', () => {
  assert.equal(parseRfc3339('9999-12-31T23:59:59.999Z'), Date.UTC(10_000, 0) - 1)
  assert.equal(parseRfc3339('9999-12-31T23:59:59-00:01'), null)
  assert.equal(parseRfc3339('9999-12-31T23:59:59-12:00'), null)
  assert.equal(parseRfc3339('0000-01-01T00:00:00+00:01'), null)
})

test('fields out of range, missing zones and other formats are refused', () => {
  for (const text of [
    '',
    '2030-01-01',
    '2030-01-01T00:00:00',
    '2030-01-01T00:00Z',
    '2030-13-01T00:00:00Z',
    '2030-00-01T00:00:00Z',
    '2030-01-00T00:00:00Z',
    '2030-01-01T24:00:00Z',
    '2030-01-01T00:60:00Z',
    '2030-01-01T00:00:60Z',
    '2030-01-01T00:00:00+24:00',
    '2030-01-01T00:00:00+05:60',
    '2030-01-01T00:00:00+0530',
    '2030-01-01T00:00:00.Z',
    '2030-01-01T00:00:00,5Z',
    '275760-01-01T00:00:00Z',
    '+275760-01-01T00:00:00Z',
    ' 2030-01-01T00:00:00Z',
    '2030-01-01T00:00:00Z\n',
    '1893456000',
    'Tue, 01 Jan 2030 00:00:00 GMT',
    '２０３０-01-01T00:00:00Z',
  ]) {
    assert.equal(parseRfc3339(text), null, JSON.stringify(text))
  }
})

test('a fraction is cut to milliseconds, never rounded up', () => {
  const at = Date.UTC(2030, 0, 1)
  assert.equal(parseRfc3339('2030-01-01T00:00:00.5Z'), at + 500)
  assert.equal(parseRfc3339('2030-01-01T00:00:00.999999999Z'), at + 999)
  assert.equal(parseRfc3339('2030-01-01T00:00:00.001Z'), at + 1)
})

test('every millisecond of a second is read exactly', () => {
  for (let ms = 0; ms < 1000; ms++) {
    assert.equal(parseRfc3339(toRfc3339(ms)), ms)
  }
})

test('the clock takes the database’s time, and never runs backwards when that is behind', async () => {
  const clock = createClock()
  const here = clock.now()
  await clock.synchronize(async () => here + DAY)
  const ahead = clock.now()
  assert.ok(ahead >= here + DAY && ahead < here + DAY + HOUR)
  await clock.synchronize(async () => here)
  assert.ok(clock.now() >= ahead)
})
