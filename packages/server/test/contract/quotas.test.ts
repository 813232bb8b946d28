import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { HOUR, SECOND } from '../../src/clock.ts'
import { newId } from '../../src/ids.ts'
import type { Quota, Refill } from '../../src/limits/limit.ts'
import { createQuotas, type Quotas } from '../../src/limits/quotas.ts'
import { forEachEngine, openTestStorage } from '../support/engines.ts'

async function consume(quotas: Quotas, quota: Quota, count = 1): Promise<string> {
  try {
    await quotas.take([quota], count)
    return 'consumed'
  } catch (error) {
    return (error as { code: string }).code
  }
}

async function consumeAll(quotas: Quotas, quota: Quota): Promise<number> {
  let consumedCount = 0
  while ((await consume(quotas, quota)) === 'consumed') consumedCount++
  return consumedCount
}

forEachEngine(engine => {
  async function openQuotas(t: Parameters<typeof openTestStorage>[1]) {
    const testStorage = await openTestStorage(engine, t)
    const { clock, storage } = testStorage
    const otherStorage = await testStorage.reopen()
    const startNode = (on = storage) => createQuotas({ clock, store: on.store.quotas })
    async function addQuota(granted: number, refill: Refill | null = null): Promise<Quota> {
      const quota = { id: newId(clock.now()), granted, refill }
      await storage.store.quotas.insert(quota, 'a key', clock.now())
      return quota
    }
    return {
      clock,
      addQuota,
      startNode,
      nodes: [startNode(), startNode(otherStorage)] as const,
      store: storage.store.quotas,
    }
  }

  test('20 concurrent calls on two nodes consume exactly the quota', async t => {
    const { addQuota, nodes } = await openQuotas(t)
    for (const granted of [0, 1, 7, 19, 20]) {
      const quota = await addQuota(granted)
      const outcomes = await Promise.all(
        Array.from({ length: 40 }, (_, number) => consume(nodes[number % 2]!, quota)),
      )
      assert.equal(outcomes.filter(outcome => outcome === 'consumed').length, granted)
      assert.equal(outcomes.filter(outcome => outcome === 'quota_exhausted').length, 40 - granted)
    }
  })

  test('a crash loses at most the leased block, 1 % of the quota, and a shutdown nothing', async t => {
    const { addQuota, nodes, startNode } = await openQuotas(t)
    const quota = await addQuota(1000)
    assert.equal(await consume(nodes[0], quota), 'consumed')
    const restartedNode = startNode()
    assert.equal(await consume(restartedNode, quota), 'consumed')
    await restartedNode.giveBackAll()
    assert.equal(await consumeAll(nodes[1], quota), 1000 - 10 - 1)
  })

  test('a quota is refilled at the start of the next hour, without unused calls', async t => {
    const { clock, addQuota, nodes } = await openQuotas(t)
    const quota = await addQuota(300, { amount: 500, every: 'hour' })
    assert.equal(await consume(nodes[0], quota, 2), 'consumed')
    clock.advance(HOUR - (clock.now() % HOUR) - 1)
    assert.equal(await consumeAll(nodes[1], quota), 295)
    clock.advance(1)
    assert.equal(await consume(nodes[0], quota), 'consumed')
    const consumedCount = (await consumeAll(nodes[1], quota)) + (await consumeAll(nodes[0], quota)) + 1
    assert.equal(consumedCount, 500)
    clock.advance(5 * HOUR)
    assert.equal(await consumeAll(nodes[0], quota), 500)
  })

  test('a refused call contains the time of the next refill, if there is one', async t => {
    const { clock, addQuota, nodes } = await openQuotas(t)
    const retryAfter = async (quota: Quota) =>
      Promise.resolve(nodes[0].take([quota], 1)).then(
        () => assert.fail(),
        error => error.extras.retryAfter,
      )
    const msUntilRefill = HOUR - (clock.now() % HOUR)
    const refilledQuota = await addQuota(0, { amount: 1, every: 'hour' })
    assert.equal(await retryAfter(refilledQuota), Math.ceil(msUntilRefill / SECOND))
    assert.equal(await retryAfter(await addQuota(0)), undefined)
  })

  test('unused leased calls are returned, once', async t => {
    const { clock, addQuota, nodes, store } = await openQuotas(t)
    const quota = await addQuota(1000)
    await consume(nodes[0], quota)
    assert.equal((await nodes[0].remaining([quota])).get(quota.id), 999)
    clock.advance(30 * SECOND)
    await nodes[0].sweep()
    await nodes[0].sweep()
    assert.equal((await store.remaining([quota.id], clock.now())).get(quota.id), 999)
  })

  test('beyond its capacity a node gives back the calls whose lease is the oldest', async t => {
    const { clock, addQuota, store } = await openQuotas(t)
    const node = createQuotas({ clock, store, maxBlocks: 2 })
    // 1 % is leased at once: three calls of `renewed`, and ten of the others.
    const renewed = await addQuota(300)
    const [oldest, newer, newest] = [await addQuota(1000), await addQuota(1000), await addQuota(1000)]
    const storedCalls = async (quota: Quota) => (await store.remaining([quota.id], clock.now())).get(quota.id)
    await consume(node, renewed)
    await consume(node, oldest)
    await consume(node, renewed, 3)
    await Promise.all([consume(node, newer), consume(node, newest)])
    await consume(node, newest, 10)
    assert.equal(await storedCalls(oldest), 999)
    assert.equal(await storedCalls(newest), 1000 - 20)
    await node.giveBackAll()
    assert.equal(await storedCalls(renewed), 300 - 4)
    assert.equal(await storedCalls(newer), 999)
    assert.equal(await storedCalls(newest), 1000 - 11)
  })

  test('a call consumes from all of several quotas or from none', async t => {
    const { addQuota, nodes, clock, store } = await openQuotas(t)
    const [large, small] = [await addQuota(1000), await addQuota(1)]
    await nodes[0].take([large, small], 1)
    await assert.rejects(async () => nodes[0].take([large, small], 1), { code: 'quota_exhausted' })
    await nodes[0].giveBackAll()
    assert.equal((await store.remaining([large.id], clock.now())).get(large.id), 999)
  })
})

test('random operations of several nodes never consume more than granted and refilled', async t => {
  const testStorage = await openTestStorage('sqlite', t)
  const { clock, storage } = testStorage
  const step = fc.record({
    do: fc.constantFrom('take', 'take', 'take', 'take', 'crash', 'stop', 'sweep', 'wait', 'undo'),
    node: fc.integer({ min: 0, max: 1 }),
    count: fc.integer({ min: 1, max: 30 }),
  })
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 5, maxLength: 40 }),
      fc.integer({ min: 0, max: 400 }),
      fc.option(fc.integer({ min: 1, max: 400 })),
      async (steps, granted, amount) => {
        const startNode = () => createQuotas({ clock, store: storage.store.quotas })
        const nodes = [startNode(), startNode()]
        const refill: Refill | null = amount === null ? null : { amount, every: 'hour' }
        const quota = { id: newId(clock.now()), granted, refill }
        await storage.store.quotas.insert(quota, 'a key', clock.now())
        /** The number of calls consumed since the last refill, and its maximum. */
        let consumedCount = 0
        let maxConsumedCount = granted
        let hour = Math.floor(clock.now() / HOUR)
        for (const { do: action, node, count } of steps) {
          if (action === 'wait') clock.advance(count % 5 === 0 ? HOUR : count * SECOND)
          if (amount !== null && Math.floor(clock.now() / HOUR) > hour) {
            hour = Math.floor(clock.now() / HOUR)
            consumedCount = 0
            maxConsumedCount = amount
          }
          if (action === 'take')
            consumedCount += (await consume(nodes[node]!, quota, count)) === 'consumed' ? count : 0
          else if (action === 'undo' && (await consume(nodes[node]!, quota, count)) === 'consumed')
            nodes[node]!.undo([quota], count)
          else if (action === 'crash') nodes[node] = startNode()
          else if (action === 'stop') await nodes[node]!.giveBackAll()
          else if (action === 'sweep') await nodes[node]!.sweep()
          assert.ok(consumedCount <= maxConsumedCount, `${consumedCount} of ${maxConsumedCount}`)
        }
      },
    ),
    { numRuns: 100 },
  )
})
