import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { HOUR, type Instant, MINUTE, SECOND } from '../../src/clock.ts'
import type { LeaseStore } from '../../src/limits/lease-store.ts'
import { type RequestLimit, type WhenCutOff, WINDOW_MS } from '../../src/limits/limit.ts'
import { createRequestLimits, SWEEP_INTERVAL } from '../../src/limits/request-limits.ts'
import { createTestClock } from '../support/clock.ts'
import { forEachEngine, openTestStorage } from '../support/engines.ts'

const SUBJECT = 'a lineage'
const HUNDRED_A_MINUTE: RequestLimit[] = [{ limit: 100, per: 'minute' }]

interface CountingStore {
  store: LeaseStore
  writes: number
  isCut: boolean
  beforeEach?: () => void
}

/** Wraps a store to count its writes and to simulate a lost connection. */
function createCountingStore(store: LeaseStore): CountingStore {
  const state: CountingStore = { store, writes: 0, isCut: false }
  const methods = Object.entries(store).map(([name, method]) => [
    name,
    async (...args: unknown[]) => {
      state.beforeEach?.()
      if (state.isCut) throw new Error('the connection is lost')
      if (name === 'write' || name === 'renewHolder') state.writes++
      return (method as (...args: unknown[]) => unknown)(...args)
    },
  ])
  state.store = Object.fromEntries(methods) as LeaseStore
  return state
}

type Limiter = ReturnType<typeof createRequestLimits>

async function attempt(
  limiter: Limiter,
  windows: readonly RequestLimit[],
  count = 1,
  subject = SUBJECT,
): Promise<string> {
  try {
    await limiter.take([{ subject, windows }], count)
    return 'let through'
  } catch (error) {
    return (error as { code: string }).code
  }
}

async function countPassed(
  limiter: Limiter,
  windows: readonly RequestLimit[],
  attempts: number,
): Promise<number> {
  let passed = 0
  for (let index = 0; index < attempts; index++)
    if ((await attempt(limiter, windows)) === 'let through') passed++
  return passed
}

forEachEngine(engine => {
  async function openNodes(
    t: Parameters<typeof openTestStorage>[1],
    count: number,
    whenCutOff: WhenCutOff = 'closed',
  ) {
    const testStorage = await openTestStorage(engine, t)
    const { clock } = testStorage
    const stores = [createCountingStore(testStorage.storage.store.limitLeases)]
    for (let more = 1; more < count; more++)
      stores.push(createCountingStore((await testStorage.reopen()).store.limitLeases))
    const start = (node: number) => createRequestLimits({ clock, store: stores[node]!.store, whenCutOff })
    return { clock, stores, start, nodes: stores.map((_, node) => start(node)) }
  }

  test('of 20 concurrent requests on each of two nodes exactly as many pass as the limit allows', async t => {
    const { nodes, clock } = await openNodes(t, 2)
    for (const limit of [1, 7, 20, 99]) {
      const windows: RequestLimit[] = [{ limit, per: 'hour' }]
      const rounds = Math.ceil((2 * limit) / 40) + 1
      let passed = 0
      for (let round = 0; round < rounds; round++) {
        const outcomes = await Promise.all(
          Array.from({ length: 40 }, (_, number) => attempt(nodes[number % 2]!, windows, 1, `of ${limit}`)),
        )
        passed += outcomes.filter(outcome => outcome === 'let through').length
        clock.advance(SWEEP_INTERVAL)
        for (const node of nodes) await node.sweep()
      }
      assert.equal(passed, limit)
    }
  })

  test('with three times the load, requests are let through within 5 % of the limit over one minute, on one node and on two', async t => {
    for (const count of [1, 2]) {
      const { nodes, clock } = await openNodes(t, count)
      for (const [limit, per] of [
        [100, 'minute'],
        [600, 'minute'],
        [100, 'second'],
      ] as const) {
        const windows: RequestLimit[] = [{ limit, per }]
        const stepMs = 20
        const length = per === 'second' ? 15 * SECOND : MINUTE
        const requestsPerStep = (3 * limit * stepMs) / WINDOW_MS[per]
        let dueCount = 0
        let passed = 0
        let sentCount = 0
        for (let at = 0; at < length; at += stepMs) {
          for (dueCount += requestsPerStep; dueCount >= 1; dueCount--)
            if (
              (await attempt(nodes[sentCount++ % count]!, windows, 1, `${limit} per ${per}`)) ===
              'let through'
            )
              passed++
          clock.advance(stepMs)
          if (at % SWEEP_INTERVAL === 0) for (const node of nodes) await node.sweep()
        }
        const expected = (limit * length) / WINDOW_MS[per]
        assert.ok(
          Math.abs(passed - expected) <= expected * 0.05,
          `${passed} of ${expected} on ${count} nodes`,
        )
      }
    }
  })

  test('a limit whose row other nodes keep changing does not cut off the limits of others', async t => {
    const { start, stores } = await openNodes(t, 1)
    const { store } = stores[0]!
    const write: LeaseStore['write'] = (name, ...rest) =>
      name === 'contended' ? Promise.resolve(false) : store.write(name, ...rest)
    stores[0]!.store = { ...store, write }
    const limiter = start(0)
    assert.equal(await attempt(limiter, HUNDRED_A_MINUTE, 1, 'contended'), 'unavailable')
    assert.equal(await attempt(limiter, HUNDRED_A_MINUTE, 1, 'of another person'), 'let through')
  })

  test('a request within a node’s share causes no write', async t => {
    const { nodes, stores, clock } = await openNodes(t, 1)
    const windows: RequestLimit[] = [
      { limit: 10_000, per: 'minute' },
      { limit: 100_000, per: 'day' },
    ]
    for (let number = 0; number < 5000; number++) {
      assert.equal(await attempt(nodes[0]!, windows), 'let through')
      clock.advance(1)
    }
    assert.ok(stores[0]!.writes <= 10, `${stores[0]!.writes} writes`)
  })

  test('the share of a killed node counts as used; a node that shuts down passes on its exact count', async t => {
    const { nodes, start, clock } = await openNodes(t, 2)
    assert.equal(await countPassed(nodes[0]!, HUNDRED_A_MINUTE, 60), 60)
    // From here on the first node counts as killed: it writes nothing more.
    clock.advance(SECOND)
    const restartedNode = start(0)
    const passedAtOnce = await countPassed(restartedNode, HUNDRED_A_MINUTE, 100)
    assert.ok(passedAtOnce <= 40, `${passedAtOnce} beside 60`)
    clock.advance(30 * SECOND)
    const passedLater = await countPassed(restartedNode, HUNDRED_A_MINUTE, 100)
    assert.ok(passedAtOnce + passedLater <= 40)
    clock.advance(2 * MINUTE)
    assert.equal(await countPassed(restartedNode, HUNDRED_A_MINUTE, 30), 30)
    await restartedNode.releaseAll()
    assert.equal(restartedNode.size, 0)
    assert.equal(await countPassed(nodes[1]!, HUNDRED_A_MINUTE, 100), 70)
  })

  test('the unused share of a node goes to another node that claims it', async t => {
    const { nodes, clock } = await openNodes(t, 2)
    await countPassed(nodes[0]!, HUNDRED_A_MINUTE, 1)
    for (let at = 0; at < MINUTE; at += SWEEP_INTERVAL) {
      clock.advance(SWEEP_INTERVAL)
      for (const node of nodes) await node.sweep()
    }
    const passedBeforeSweep = await countPassed(nodes[1]!, HUNDRED_A_MINUTE, 100)
    assert.ok(passedBeforeSweep < 100)
    for (const node of nodes) await node.sweep()
    clock.advance(SECOND)
    assert.equal(passedBeforeSweep + (await countPassed(nodes[1]!, HUNDRED_A_MINUTE, 100)), 100)
  })

  test('lowered and raised limits take effect at once on every node', async t => {
    const { nodes, clock } = await openNodes(t, 2)
    await countPassed(nodes[0]!, HUNDRED_A_MINUTE, 30)
    await countPassed(nodes[1]!, HUNDRED_A_MINUTE, 10)
    const loweredLimits: RequestLimit[] = [{ limit: 41, per: 'minute' }]
    const passedCount =
      (await countPassed(nodes[0]!, loweredLimits, 5)) + (await countPassed(nodes[1]!, loweredLimits, 5))
    assert.ok(passedCount <= 1, `${passedCount} beside 40 of 41`)
    clock.advance(SECOND)
    const raisedLimits: RequestLimit[] = [{ limit: 1000, per: 'minute' }]
    assert.equal(await countPassed(nodes[0]!, raisedLimits, 100), 100)
  })

  test('a node without database uses its share for at most 15 s, and then refuses or limits locally, as configured', async t => {
    for (const whenCutOff of ['closed', 'open'] as const) {
      const { nodes, stores, clock } = await openNodes(t, 1, whenCutOff)
      const limits: RequestLimit[] = [{ limit: 100, per: 'hour' }]
      assert.equal(await countPassed(nodes[0]!, limits, 5), 5)
      stores[0]!.isCut = true
      assert.equal(await attempt(nodes[0]!, limits), 'let through')
      clock.advance(15 * SECOND)
      const expected = whenCutOff === 'closed' ? 'unavailable' : 'let through'
      assert.equal(await attempt(nodes[0]!, limits), expected)
      const passedWhileCutOff = await countPassed(nodes[0]!, limits, 200)
      assert.equal(passedWhileCutOff, whenCutOff === 'closed' ? 0 : 93)
      stores[0]!.isCut = false
      clock.advance(2 * SECOND)
      assert.equal(await attempt(nodes[0]!, limits), whenCutOff === 'closed' ? 'let through' : 'rate_limited')
    }
  })

  test('a node that recovers after its lease does not use a share that another took over', async t => {
    const { nodes, stores, clock } = await openNodes(t, 2)
    const limits: RequestLimit[] = [{ limit: 100, per: 'hour' }]
    assert.equal(await countPassed(nodes[0]!, limits, 50), 50)
    stores[0]!.isCut = true
    clock.advance(20 * SECOND)
    const passedOnOther = await countPassed(nodes[1]!, limits, 100)
    assert.ok(passedOnOther <= 50)
    stores[0]!.isCut = false
    clock.advance(2 * SECOND)
    const passedAfterwards = await countPassed(nodes[0]!, limits, 100)
    assert.ok(
      50 + passedOnOther + passedAfterwards <= 100,
      `${passedOnOther} and ${passedAfterwards} beside 50`,
    )
  })

  test('while the database is slow, a request above the limit is refused as such', async t => {
    const { nodes, stores, clock } = await openNodes(t, 2)
    assert.equal(await countPassed(nodes[0]!, HUNDRED_A_MINUTE, 95), 95)
    stores[1]!.beforeEach = () => clock.advance(400)
    for (let call = 0; call < 3; call++)
      assert.equal(await attempt(nodes[1]!, HUNDRED_A_MINUTE), 'rate_limited')
  })

  test('a request of several units passes entirely or not at all, and never above the limit', async t => {
    const { nodes } = await openNodes(t, 1)
    const limits: RequestLimit[] = [{ limit: 10, per: 'hour' }]
    assert.equal(await attempt(nodes[0]!, limits, 11), 'rate_limited')
    assert.equal(await attempt(nodes[0]!, limits, 7), 'let through')
    assert.equal(await attempt(nodes[0]!, limits, 4), 'rate_limited')
    assert.equal(await attempt(nodes[0]!, limits, 3), 'let through')
  })
})

test('a request is counted only if all subjects and windows have room', async t => {
  const { storage, clock } = await openTestStorage('sqlite', t)
  const limiter = createRequestLimits({ clock, store: storage.store.limitLeases, whenCutOff: 'closed' })
  const subjectsOf = (subject: string) => [
    { subject, windows: [{ limit: 5, per: 'minute' as const }] },
    { subject: 'person:p', windows: [{ limit: 7, per: 'minute' as const }] },
  ]
  const passCount = async (subject: string) =>
    Promise.resolve(limiter.take(subjectsOf(subject), 1)).then(
      () => 1,
      () => 0,
    )
  let passed = 0
  for (let number = 0; number < 20; number++) passed += await Promise.resolve().then(() => passCount('one'))
  assert.equal(passed, 5)
  for (let number = 0; number < 20; number++) passed += await Promise.resolve().then(() => passCount('two'))
  assert.equal(passed, 7)
  const [window] = await limiter.peek(subjectsOf('two'))
  assert.deepEqual(window, { name: 'minute', limit: 5, windowSeconds: 60, remaining: 3, resetSeconds: 60 })
})

test('beyond the maximum number of subjects the oldest are released, without losing their counts', async t => {
  const { storage, clock } = await openTestStorage('sqlite', t)
  const store = storage.store.limitLeases
  const limiter = createRequestLimits({ clock, store, whenCutOff: 'closed', maxSubjects: 10 })
  const hourlyLimits: RequestLimit[] = [{ limit: 1, per: 'hour' }]
  for (let number = 0; number < 40; number++) {
    assert.equal(await attempt(limiter, hourlyLimits, 1, `subject ${number}`), 'let through')
    assert.ok(limiter.size <= 11)
  }
  for (let number = 0; number < 40; number++)
    assert.equal(await attempt(limiter, hourlyLimits, 1, `subject ${number}`), 'rate_limited')
})

test('an idle subject is released', async t => {
  const { storage, clock } = await openTestStorage('sqlite', t)
  const limiter = createRequestLimits({ clock, store: storage.store.limitLeases, whenCutOff: 'closed' })
  await attempt(limiter, [{ limit: 5, per: 'day' }])
  clock.advance(HOUR)
  await limiter.sweep()
  assert.equal(limiter.size, 0)
  assert.equal(await countPassed(limiter, [{ limit: 5, per: 'day' }], 9), 4)
})

type Step =
  | { do: 'take'; node: number; count: number }
  | { do: 'burst'; node: number; count: number }
  | { do: 'wait'; ms: number }
  | { do: 'sweep' | 'kill' | 'stop' | 'cut' | 'mend'; node: number }

const node = fc.integer({ min: 0, max: 2 })
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant('take' as const), node, count: fc.integer({ min: 1, max: 4 }) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('burst' as const), node, count: fc.integer({ min: 2, max: 30 }) }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('wait' as const),
      ms: fc.constantFrom(1, 40, 400, 999, 1000, 7000, 18_000, 61_000),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constantFrom(
        'sweep' as const,
        'kill' as const,
        'stop' as const,
        'cut' as const,
        'mend' as const,
      ),
      node,
    }),
  },
)

test('random operations on three nodes never exceed the limit of any window', async t => {
  const testStorage = await openTestStorage('sqlite', t)
  let runCount = 0
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 10, maxLength: 60 }),
      fc.integer({ min: 1, max: 40 }),
      fc.integer({ min: 1, max: 120 }),
      async (steps, perSecond, perMinute) => {
        const windows: RequestLimit[] = [
          { limit: perSecond, per: 'second' },
          { limit: perMinute, per: 'minute' },
        ]
        const subject = `run ${runCount++}`
        const clock = createTestClock()
        const stores = [0, 1, 2].map(() => createCountingStore(testStorage.storage.store.limitLeases))
        const start = (index: number) =>
          createRequestLimits({ clock, store: stores[index]!.store, whenCutOff: 'closed' })
        const nodes = [0, 1, 2].map(start)
        const passedRequests: { at: Instant; count: number }[] = []
        const attemptOn = async (index: number, count: number) => {
          if ((await attempt(nodes[index]!, windows, count, subject)) === 'let through')
            passedRequests.push({ at: clock.now(), count })
        }
        for (const each of steps) {
          if (each.do === 'take') await attemptOn(each.node, each.count)
          else if (each.do === 'burst')
            await Promise.all(
              Array.from({ length: each.count }, (_, at) => attemptOn((each.node + (at % 2)) % 3, 1)),
            )
          else if (each.do === 'wait') clock.advance(each.ms)
          else if (each.do === 'sweep') await nodes[each.node]!.sweep().catch(() => {})
          else if (each.do === 'kill') nodes[each.node] = start(each.node)
          else if (each.do === 'stop') {
            await nodes[each.node]!.releaseAll().catch(() => {})
            nodes[each.node] = start(each.node)
          } else stores[each.node]!.isCut = each.do === 'cut'
        }
        for (const { limit, per } of windows) {
          for (const { at } of passedRequests) {
            const requestsInWindow = passedRequests.filter(
              each => each.at <= at && each.at > at - WINDOW_MS[per],
            )
            const sum = requestsInWindow.reduce((total, { count }) => total + count, 0)
            assert.ok(sum <= limit, `${sum} within a ${per} of ${limit}`)
          }
        }
      },
    ),
    { numRuns: 150 },
  )
})

test('a clock that steps forward loses no counts within the window, and a stopped clock keeps refusing', async t => {
  const { storage, clock } = await openTestStorage('sqlite', t)
  const limiter = createRequestLimits({ clock, store: storage.store.limitLeases, whenCutOff: 'closed' })
  const limits: RequestLimit[] = [{ limit: 50, per: 'hour' }]
  assert.equal(await countPassed(limiter, limits, 50), 50)
  clock.advance(30 * MINUTE)
  assert.equal(await countPassed(limiter, limits, 50), 0)
  clock.set(clock.now() - 10 * MINUTE)
  assert.equal(await countPassed(limiter, limits, 50), 0)
  clock.advance(40 * MINUTE + 1)
  assert.equal(await countPassed(limiter, limits, 60), 50)
})
