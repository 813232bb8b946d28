import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { createLog, MAX_LINES_A_MINUTE } from '../../src/log.ts'
import { onceInTime } from '../support/patience.ts'
import { startKeyway } from './running.ts'

const FORM_HEAD =
  'POST /sign-in HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nSec-Fetch-Site: same-origin\r\n'

test('requests that the client aborts are not logged', async t => {
  const lines: string[] = []
  const consoleInfo = t.mock.method(console, 'info', () => {})
  const consoleError = t.mock.method(console, 'error', () => {})
  const { port, url } = await startKeyway(
    t,
    {},
    { log: createLog('info', { write: line => void lines.push(line) }) },
  )
  const linesBefore = lines.length
  const jsonHead = 'POST /auth/agent-token HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n'
  for (const head of [FORM_HEAD, jsonHead]) {
    for (const body of ['Content-Length: 100\r\n\r\nemail=', 'Transfer-Encoding: chunked\r\n\r\n5\r\nema'])
      await sendAndReset(port, head + body)
  }
  for (const path of ['/inbox/events', '/docs', '/openapi.json', '/sign-in'])
    await sendAndReset(
      port,
      `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n`.repeat(3),
    )
  assert.equal((await fetch(`${url}/livez`)).status, 200)
  assert.deepEqual(lines.slice(linesBefore), [])
  assert.deepEqual([consoleInfo.mock.callCount(), consoleError.mock.callCount()], [0, 0])
})

test('two hundred refusals write no more log lines than the limit', async t => {
  const lines: string[] = []
  const stoppedClock = () => 0
  const { url } = await startKeyway(
    t,
    { KEYWAY_FAILURE_LIMITS: '10000/minute' },
    { log: createLog('info', { write: line => void lines.push(line) }, stoppedClock) },
  )
  const linesBefore = lines.length
  const body = JSON.stringify({ api_key: `svc_${'a'.repeat(32)}` })
  for (let round = 0; round < 40; round++) {
    const calls = Array.from({ length: 5 }, () =>
      fetch(`${url}/auth/agent-token`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body,
      }),
    )
    for (const answer of await Promise.all(calls)) assert.equal(answer.status, 401)
  }
  assert.equal(lines.length - linesBefore, MAX_LINES_A_MINUTE)
})

async function sendAndReset(port: number, bytes: string): Promise<void> {
  const socket = connect(port, '127.0.0.1').on('error', () => {})
  await new Promise(resolve => socket.write(bytes, resolve))
  await fetch(`http://127.0.0.1:${port}/livez`)
  socket.resetAndDestroy()
  if (!socket.closed) await onceInTime(socket, 'close')
}
