import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createEntry } from '../../src/http/linked-list.ts'
import { createQueueLengths } from '../../src/http/queue-lengths.ts'
import { Random } from '../support/random.ts'

test('the longest queue is the one that a search would find, after any changes', () => {
  const random = new Random(1)
  const lengths = createQueueLengths()
  const queues = Array.from({ length: 20 }, (_, n) => ({
    entry: createEntry(`${n}`),
    length: 0,
    changedAt: 0,
  }))
  for (let change = 1; change <= 5000; change++) {
    const queue = random.pick(queues)
    const length = queue.length === 0 || random.below(2) ? queue.length + 1 : queue.length - 1
    lengths.change(queue.entry, queue.length, length)
    Object.assign(queue, { length, changedAt: change })
    const sorted = queues.toSorted((a, b) => b.length - a.length || b.changedAt - a.changedAt)
    const longest = sorted[0]!.length > 0 ? sorted[0]!.entry.value : undefined
    assert.deepEqual([lengths.maxLength, lengths.longest()], [sorted[0]!.length, longest])
  }
})
