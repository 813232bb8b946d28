import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLog } from '../../src/log.ts'
import { createSecrets } from '../../src/secrets.ts'
import { createEventReceiver } from '../../src/storage/event-receiver.ts'
import { createEventSeal } from '../../src/storage/event-seal.ts'

const MINUTE = 60_000

test('rejected events are logged at most once a minute with their number, and all are counted', t => {
  let time = 0
  t.mock.method(performance, 'now', () => time)
  const lines: { reason: string; events: number }[] = []
  const receiver = createEventReceiver({
    seal: createEventSeal({
      secrets: createSecrets([Buffer.alloc(32, 1)]),
      channel: 'test',
      maxPartBytes: 1000,
      now: () => 0,
    }),
    log: createLog('info', { write: line => void lines.push(JSON.parse(line)) }),
    deliver: () => assert.fail('nothing was sealed'),
    receiveTest: () => {},
  })
  const flood = (count: number) => {
    for (let n = 0; n < count; n++) receiver.receive(Buffer.from(`forged ${n}`))
  }
  const loggedReasons = () => lines.map(({ reason, events }) => `${events} ${reason}`)

  flood(1000)
  assert.deepEqual(loggedReasons(), ['1 malformed'])
  time = MINUTE - 1
  flood(1)
  assert.equal(lines.length, 1)
  time = MINUTE
  flood(1000)
  assert.deepEqual(loggedReasons(), ['1 malformed', '1001 malformed'])
  assert.equal(receiver.rejected.get('malformed'), 2001)
  receiver.stop()
})
