import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { createClock, DAY, HOUR, MINUTE, parseRfc3339, SECOND, toRfc3339 } from '../../src/clock.ts'

test('an instant is written in UTC with milliseconds', () => {
  assert.equal(toRfc3339(Date.UTC(2026, 10, 20, 19, 22)), '2026-11-20T19:22:00.000Z')
})

test('a formatted instant is parsed as the same instant', () => {
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

test('KEY-12: a day that does not exist is refused, and one that exists is accepted', () => {
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

test('an instant with a year of more than four digits is refused', () => {
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

test('a fraction is truncated to milliseconds', () => {
  const at = Date.UTC(2030, 0, 1)
  assert.equal(parseRfc3339('2030-01-01T00:00:00.5Z'), at + 500)
  assert.equal(parseRfc3339('2030-01-01T00:00:00.999999999Z'), at + 999)
  assert.equal(parseRfc3339('2030-01-01T00:00:00.001Z'), at + 1)
})

test('every millisecond of a second is parsed exactly', () => {
  for (let ms = 0; ms < 1000; ms++) {
    assert.equal(parseRfc3339(toRfc3339(ms)), ms)
  }
})

describe('the clock on SQLite', () => {
  for (const [direction, step] of [
    ['backward', -HOUR],
    ['forward', HOUR],
  ] as const) {
    test(`a ${direction} step of the system clock changes time by at most 500 ppm`, async () => {
      const machine = createMachine()
      const clock = createClock('system', machine)
      await clock.synchronize(machine.readSystem)
      const timeBefore = clock.now()
      machine.step(step)
      for (let second = 0; second < 600; second++) {
        machine.pass(SECOND)
        await clock.synchronize(machine.readSystem)
      }
      const elapsed = clock.now() - timeBefore
      assert.ok(Math.abs(elapsed - 10 * MINUTE) <= 10 * MINUTE * 500e-6 + 1, `${elapsed} ms passed`)
      assert.ok(Math.abs(clock.remainingOffset - step) < SECOND, 'the step is known')
      assert.ok(Math.abs(clock.skew + step) < SECOND, 'and seen in the skew')
    })
  }

  test('a slewed drift is followed', async () => {
    const machine = createMachine()
    const clock = createClock('system', machine)
    await clock.synchronize(machine.readSystem)
    for (let second = 0; second < 3600; second++) {
      machine.pass(SECOND)
      machine.step(0.4)
      await clock.synchronize(machine.readSystem)
    }
    assert.ok(Math.abs(clock.now() - machine.system()) <= 3, `off by ${clock.now() - machine.system()} ms`)
  })

  test('the time of a suspension counts, also if the system clock was changed meanwhile', async () => {
    const machine = createMachine()
    const clock = createClock('system', machine)
    await clock.synchronize(machine.readSystem)
    const timeBefore = clock.now()
    machine.suspend(8 * HOUR)
    machine.step(-DAY)
    await clock.synchronize(machine.readSystem)
    assert.ok(Math.abs(clock.now() - timeBefore - 8 * HOUR) <= 1)
  })
})

describe('the clock on PostgreSQL', () => {
  test('of several answers the fastest sets the clock', async () => {
    const machine = createMachine()
    const clock = createClock('database', machine)
    const delays = [4000, 1, 2000]
    await clock.synchronize(async () => {
      const delay = delays.shift()!
      machine.pass(delay / 2)
      const instant = machine.system() + DAY
      machine.pass(delay / 2)
      assert.ok(clock.now() < machine.system() + HOUR, 'no single answer is shown')
      return instant
    })
    assert.ok(Math.abs(clock.now() - machine.system() - DAY) <= 1)
  })

  test('a slow answer does not change a correct clock', async () => {
    const machine = createMachine()
    const clock = createClock('database', machine)
    await clock.synchronize(machine.readSystem)
    for (const [question, answer] of [
      [5000, 0],
      [0, 5000],
    ] as const) {
      let largestError = 0
      await clock.synchronize(async () => {
        machine.pass(question)
        const instant = machine.system()
        machine.pass(answer)
        largestError = Math.max(largestError, Math.abs(clock.now() - machine.system()))
        return instant
      })
      largestError = Math.max(largestError, Math.abs(clock.now() - machine.system()))
      assert.ok(largestError <= 1, `off by ${largestError} ms`)
    }
  })

  test('a forward step of the database’s clock is followed at once', async () => {
    const machine = createMachine()
    const clock = createClock('database', machine)
    await clock.synchronize(machine.readSystem)
    machine.step(HOUR)
    await clock.synchronize(machine.readSystem)
    assert.ok(Math.abs(clock.now() - machine.system()) <= 1)
  })

  test('a backward step of the database’s clock is followed at half speed, so time never goes back', async () => {
    const machine = createMachine()
    const clock = createClock('database', machine)
    await clock.synchronize(machine.readSystem)
    machine.step(-10 * SECOND)
    await clock.synchronize(machine.readSystem)
    const timeBefore = clock.now()
    machine.pass(10 * SECOND)
    const elapsed = clock.now() - timeBefore
    assert.ok(Math.abs(elapsed - 5 * SECOND) <= 2, `${elapsed} ms passed`)
    machine.pass(11 * SECOND)
    assert.ok(Math.abs(clock.now() - machine.system()) <= 1, 'it has arrived')
  })
})

/** Wall clock and monotonic clock of a machine, under the control of the test. */
function createMachine() {
  let monotonicMs = 1000
  let systemMs = Date.UTC(2026, 10, 20)
  let uptimeMs = 5000
  const pass = (ms: number) => {
    monotonicMs += ms
    systemMs += ms
    uptimeMs += ms
  }
  return {
    monotonic: () => monotonicMs,
    system: () => Math.floor(systemMs),
    uptime: () => uptimeMs,
    readSystem: async () => Math.floor(systemMs),
    pass,
    /** Wall clock and uptime advance; monotonic time does not. */
    suspend(ms: number) {
      systemMs += ms
      uptimeMs += ms
    },
    step(ms: number) {
      systemMs += ms
    },
  }
}
