import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Event, Events } from '../../src/events.ts'
import { createRelay } from '../../src/hub/node-relay.ts'
import { newId } from '../../src/ids.ts'
import { createLog } from '../../src/log.ts'

const MIB = 1024 * 1024
/** The largest frame. */
const FRAME = 'x'.repeat(64 * 1024)

/** A node with one peer, and a carrier that publishes nothing until it is released. */
function openRelay() {
  const published: Event[] = []
  let release = () => {}
  const held = new Promise<void>(resolve => {
    release = resolve
  })
  const events = {
    async publish(event) {
      await held
      published.push(event)
    },
  } as Events
  const peer = newId(1)
  const relay = createRelay({
    events,
    presence: { peers: () => [peer], met: () => {} },
    log: createLog('silent'),
    nodeId: newId(1),
    carryOut: () => 0,
  })
  const frames = () =>
    published.flatMap(event =>
      event.type === 'hub.relay' && event.message.kind === 'order' && event.message.order.op === 'deliver'
        ? [event.message.order]
        : [],
    )
  const send = (userId: string) => void relay.ask({ op: 'deliver', userId, to: 'all', frame: FRAME })
  return { relay, published, frames, send, release, settled: () => new Promise(setImmediate) }
}

test('what one owner has waiting for a slow carrier is bounded in bytes, and larger than a burst of one connection', async () => {
  const { frames, send, release, settled } = openRelay()
  for (let n = 0; n < 500; n++) send('owner')
  release()
  await settled()
  const bytes = frames().length * FRAME.length
  assert.ok(bytes <= 16 * MIB, `${bytes} bytes`)
  assert.ok(frames().length >= 200, `${frames().length} messages`)
})

test('what all owners have waiting is bounded in bytes', async () => {
  const { frames, send, release, settled } = openRelay()
  for (let owner = 0; owner < 100; owner++) for (let n = 0; n < 90; n++) send(`flood ${owner}`)
  release()
  await settled()
  assert.ok(frames().length * FRAME.length <= 48 * MIB, `${frames().length} messages`)
})

test('ten owners that send as much as they can leave room for the largest frame of another', async () => {
  const { frames, send, release, settled } = openRelay()
  for (let owner = 0; owner < 10; owner++) for (let n = 0; n < 500; n++) send(`flood ${owner}`)
  send('newcomer')
  release()
  await settled()
  assert.equal(frames().filter(({ userId }) => userId === 'newcomer').length, 1)
})

test('an order that nobody waits for any more is not published', async () => {
  const { relay, published, release, settled } = openRelay()
  void relay.greet() // the publication under way
  await relay.ask({ op: 'deliver', userId: 'owner', to: 'all', frame: 'late' })
  release()
  await settled()
  assert.equal(published.length, 1)
})

test('room that was taken is given back once an event was published', async () => {
  const { frames, send, release, settled } = openRelay()
  release()
  for (let round = 0; round < 3; round++) {
    for (let n = 0; n < 150; n++) send(`owner ${n % 10}`)
    await settled()
  }
  assert.equal(frames().length, 450)
})
