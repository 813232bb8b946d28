import assert from 'node:assert/strict'
import { test } from 'node:test'
import { instantOf, newOrderedId, parseId } from '../../src/ids.ts'

test('ordered ids sort by their creation within a millisecond', () => {
  const now = Date.UTC(2040, 0, 1)
  const instants = [...Array.from({ length: 1000 }, () => now), now + 1, now + 1]
  const ids = instants.map(newOrderedId)
  assert.deepEqual(ids.toSorted(), ids)
  assert.deepEqual(ids.map(instantOf), instants)
  for (const id of ids)
    assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  assert.ok(ids.every(id => parseId(id) === id))
})
