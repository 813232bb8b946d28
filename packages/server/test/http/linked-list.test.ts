import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createEntry, LinkedList } from '../../src/http/linked-list.ts'

describe('a linked list', () => {
  it('keeps its order when entries are removed from any place and appended again', () => {
    const list = new LinkedList<string>()
    const entries = ['a', 'b', 'c', 'd'].map(createEntry)
    for (const entry of entries) list.append(entry)
    const [a, b, , d] = entries
    for (const entry of [b!, d!, a!]) assert.equal(list.remove(entry), true)
    assert.deepEqual([...list], ['c'])
    list.append(a!)
    assert.deepEqual([list.first!.value, ...list], ['c', 'c', 'a'])
    assert.equal(list.size, 2)
  })

  it('removes an entry once', () => {
    const list = new LinkedList<string>()
    const entry = createEntry('a')
    list.append(entry)
    assert.deepEqual([list.remove(entry), list.remove(entry)], [true, false])
    assert.deepEqual([list.size, list.first], [0, null])
  })

  it('leaves no reference in a removed entry, so that it keeps no other in memory', () => {
    const list = new LinkedList<string>()
    const entries = ['a', 'b', 'c'].map(createEntry)
    for (const entry of entries) list.append(entry)
    list.remove(entries[1]!)
    assert.deepEqual([entries[1]!.before, entries[1]!.after], [null, null])
    assert.deepEqual([...list], ['a', 'c'])
  })
})
