import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ServerFrame } from '@keyway/sdk/protocol'
import { checkFrames, checkPresence } from './support/presence-history.ts'

const SEED_COUNT = Number(process.env.PRESENCE_SEEDS ?? 60)
const FIRST_SEED = Number(process.env.PRESENCE_SEED ?? 1)

// PRESENCE_SEED=n repeats one seed; `npm run test:slow` runs ten thousand.
describe('what watchers receive', () => {
  test('has no gap and no stale connection, whatever is lost, delayed, cut off or killed', async () => {
    let frames = 0
    const reasons = new Set<string>()
    const seedCount = process.env.PRESENCE_SEED === undefined ? SEED_COUNT : 1
    for (let seed = FIRST_SEED; seed < FIRST_SEED + seedCount; seed++) {
      const summary = await checkPresence(seed)
      frames += summary.frames
      for (const reason of summary.left) reasons.add(reason)
    }
    if (seedCount < 20) return
    assert.ok(frames > 20 * seedCount, `${frames} frames are too few to show anything`)
    assert.deepEqual([...reasons].sort(), ['closed', 'lost', 'node_lost'])
  })

  test('is checked by a checker that finds gaps, stale connections and duplicates', () => {
    const connectionObject = (connection_id: string) => ({ connection_id, key_id: 'key' }) as never
    const list: ServerFrame = { type: 'presence', connections: [connectionObject('a')] }
    const joinedFrame: ServerFrame = { type: 'joined', connection: connectionObject('b') }
    const leftFrame: ServerFrame = { type: 'left', connection_id: 'a', reason: 'closed' }
    checkFrames([list, joinedFrame, leftFrame], ['b'], 'fine')
    assert.throws(() => checkFrames([list, joinedFrame, leftFrame], ['b', 'c'], ''), /gap or a ghost/)
    assert.throws(() => checkFrames([list, joinedFrame], ['b'], ''), /gap or a ghost/)
    assert.throws(() => checkFrames([list, joinedFrame, joinedFrame], ['a', 'b'], ''), /joined twice/)
    assert.throws(() => checkFrames([list, leftFrame, leftFrame], [], ''), /left without joining/)
    assert.throws(() => checkFrames([joinedFrame], ['b'], ''), /before the list/)
    assert.throws(() => checkFrames([list], [], ''), /gap or a ghost/)
  })
})
