import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createWorker } from '../../src/outbox/leased-work.ts'
import { openTestStorage } from '../support/engines.ts'
import { inTime } from '../support/patience.ts'

test('a drain works on an item that can be leased only since the queue was last read', async t => {
  const { storage, clock, log } = await openTestStorage('sqlite', t)
  /** The endpoint of each item is the first letter of its id; one item of an endpoint is worked on at a time. */
  const queuedIds = ['a1', 'b1', 'b2']
  const busyEndpoints = new Set<string>()
  const starts = new Map(queuedIds.map(id => [id, Promise.withResolvers<void>()]))
  const ends = new Map(queuedIds.map(id => [id, Promise.withResolvers<void>()]))
  const secondRead = Promise.withResolvers<void>()
  const secondReadMayEnd = Promise.withResolvers<void>()
  let reads = 0
  const worker = createWorker<{ id: string }>(
    {
      name: 'test queue',
      queuedEvent: 'webhook.queued',
      concurrency: 10,
      leaseTime: 60_000,
      async lease() {
        reads++
        const leasedIds = queuedIds.filter((id, index) => {
          const isFirst = queuedIds.findIndex(other => other[0] === id[0]) === index
          return isFirst && !busyEndpoints.has(id[0]!)
        })
        for (const id of leasedIds) queuedIds.splice(queuedIds.indexOf(id), 1)
        if (reads === 2) {
          secondRead.resolve()
          await secondReadMayEnd.promise
        }
        return leasedIds.map(id => ({ id }))
      },
      releaseUnknown: async () => {},
      nextDue: async () => null,
      async run({ id }) {
        busyEndpoints.add(id[0]!)
        starts.get(id)!.resolve()
        await ends.get(id)!.promise
        busyEndpoints.delete(id[0]!)
      },
    },
    { storage, clock, log },
  )
  const draining = worker.drain()
  await inTime('the first items of both endpoints', starts.get('b1')!.promise)
  ends.get('a1')!.resolve()
  await inTime('the second read', secondRead.promise)
  ends.get('b1')!.resolve()
  await new Promise(resolve => setImmediate(resolve))
  secondReadMayEnd.resolve()
  await inTime('the item that the second read could not lease', starts.get('b2')!.promise)
  ends.get('b2')!.resolve()
  await draining
  assert.deepEqual(queuedIds, [])
})
