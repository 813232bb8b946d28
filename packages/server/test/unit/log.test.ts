import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLog, MAX_LINES_A_MINUTE } from '../../src/log.ts'

const MINUTE = 60_000

function openLog() {
  const lines: { level: string; msg: string; kind?: string; lines?: number }[] = []
  let time = 0
  const log = createLog('info', { write: line => void lines.push(JSON.parse(line)) }, () => time)
  return { log, lines, pass: (milliseconds: number) => (time += milliseconds) }
}

test('at most 30 lines a minute of one kind are written, then one with the number of the others', () => {
  const { log, lines, pass } = openLog()
  for (let n = 0; n < 10_000; n++) log.warn({ n }, 'unavailable')
  assert.equal(lines.length, MAX_LINES_A_MINUTE)
  pass(MINUTE - 1)
  log.warn({}, 'unavailable')
  assert.equal(lines.length, MAX_LINES_A_MINUTE)
  pass(1)
  log.warn({}, 'unavailable')
  assert.equal(lines.length, MAX_LINES_A_MINUTE + 2)
  const [withheld, next] = lines.slice(-2)
  assert.deepEqual(
    [withheld!.msg, withheld!.kind, withheld!.lines],
    ['log lines were withheld', 'unavailable', 9971],
  )
  assert.equal(next!.msg, 'unavailable')
})

test('the number of withheld lines is logged within a minute, also without a further line', t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { log, lines } = openLog()
  for (let n = 0; n < 100; n++) log.error({}, 'a page failed')
  t.mock.timers.tick(MINUTE)
  assert.equal(lines.at(-1)!.lines, 100 - MAX_LINES_A_MINUTE)
})

test('a flood of one message or code withholds no lines of others', () => {
  const { log, lines } = openLog()
  for (let n = 0; n < 1000; n++) log.info({ code: 'invalid_api_key' }, 'refused')
  log.info({ code: 'refresh_token_reused' }, 'refused')
  log.error({}, 'request failed')
  assert.equal(lines.length, MAX_LINES_A_MINUTE + 2)
})
