import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createClock, HOUR, MINUTE, SECOND } from '../../src/clock.ts'
import { loadConfig } from '../../src/config.ts'
import { createLog } from '../../src/log.ts'
import { createClockSync } from '../../src/operations/clock-sync.ts'
import { checkHealth } from '../../src/operations/health.ts'
import { openServices } from '../../src/services.ts'
import { startKeyway } from '../ops/running.ts'
import { type EngineName, forEachEngine, openTestStorage } from '../support/engines.ts'

forEachEngine(engine => {
  test('the service’s time advances after the database’s clock was stepped back by an hour', async t => {
    const { clock } = await openTestServices(engine, t)
    const timeBefore = clock.now()
    await clock.synchronize(async () => timeBefore - HOUR)
    busyWait(50)
    const elapsed = clock.now() - timeBefore
    assert.ok(elapsed >= 20 && elapsed < MINUTE, `${elapsed} ms passed in 50`)
  })
})

test('a forward step of the system’s clock expires nothing on SQLite', async t => {
  const { clock } = await openTestServices('sqlite', t)
  const timeBefore = clock.now()
  await clock.synchronize(async () => timeBefore + HOUR)
  assert.ok(clock.now() - timeBefore < MINUTE)
})

test('each step of a clock is logged once, with at most one line a minute', async () => {
  const lines: string[] = []
  const log = createLog('warn', { write: line => lines.push(line) })
  let monotonicMs = 0
  let systemMs = Date.UTC(2026, 0)
  const advance = (ms: number) => {
    monotonicMs += ms
    systemMs += ms
  }
  const clock = createClock('system', {
    monotonic: () => monotonicMs,
    system: () => systemMs,
    uptime: () => monotonicMs,
  })
  const sync = createClockSync({ clock, reference: 'system', readClock: async () => systemMs, log })
  const runForMinutes = async (count: number) => {
    for (let second = 0; second < count * 60; second++) {
      advance(SECOND)
      await sync.run()
    }
  }
  await runForMinutes(2)
  assert.equal(lines.length, 0)
  systemMs -= HOUR
  await runForMinutes(10)
  assert.equal(lines.length, 1)
  assert.match(lines[0]!, /stepped and is 3600 s behind the service's/)
  for (let flap = 0; flap < 300; flap++) {
    systemMs += flap % 2 === 0 ? HOUR : -HOUR
    advance(SECOND)
    await sync.run()
  }
  assert.ok(lines.length <= 1 + 6, `${lines.length} lines after five minutes of steps`)
})

test('/readyz reports a stepped clock and stays ready', async t => {
  const { services, hub } = await startKeyway(t)
  const clockCheck = async () => (await checkHealth(services, hub)).find(({ name }) => name === 'clock')
  assert.deepEqual([(await clockCheck())?.ok, (await clockCheck())?.detail], [true, undefined])
  await services.clock.synchronize(async () => services.clock.now() - HOUR)
  const steppedCheck = await clockCheck()
  assert.deepEqual([steppedCheck?.ok, steppedCheck?.required], [false, false])
  assert.match(steppedCheck!.detail!, /3600 s behind.*restart/)
})

async function openTestServices(engine: EngineName, t: TestContext) {
  const { config: storage } = await openTestStorage(engine, t)
  const { database } = storage
  const config = {
    ...loadConfig({ KEYWAY_DATA_DIR: storage.dataDir }),
    ...storage,
    secrets: [Buffer.alloc(32, 7)],
  }
  assert.equal(config.database, database)
  const services = await openServices(config, createLog('silent'))
  t.after(() => services.close())
  return services
}

/** Busy-waits in real time, since a timer could be late on a busy machine. */
function busyWait(ms: number): void {
  const endsAt = performance.now() + ms
  while (performance.now() < endsAt);
}
