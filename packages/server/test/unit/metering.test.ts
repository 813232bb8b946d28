import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HOUR, SECOND } from '../../src/clock.ts'
import { createMetering } from '../../src/hub/metering.ts'

test('the time of a connection is counted once, also when the clock is set back, and while it is open only', () => {
  const counts: unknown[] = []
  const metering = createMetering({
    count: (_userId: string, _keyId: string, name: string, amount = 1) => counts.push([name, amount]),
  } as never)
  const connection = { userId: 'user', keyId: 'key', state: 'open' as 'open' | 'held', meteredAt: 0 }
  const start = 10 * HOUR
  metering.begin(connection, start)
  metering.tick(connection, start + 2 * SECOND - 1)
  metering.tick(connection, start + 2 * SECOND)
  metering.countConnectedTime(connection, start + SECOND)
  metering.countConnectedTime(connection, start + 2 * SECOND)
  metering.countConnectedTime(connection, start + 3 * SECOND)
  connection.state = 'held'
  metering.countConnectedTime(connection, start + 9 * SECOND)
  assert.deepEqual(counts, [
    ['connections', 1],
    ['connectedMs', 2 * SECOND],
    ['connectedMs', SECOND],
  ])
})
