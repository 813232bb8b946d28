import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { MINUTE } from '../../src/clock.ts'
import { aMessage } from '../contract/fixtures.ts'
import { fill, mountSmallDisk } from '../faults/disk.ts'
import { until } from '../support/patience.ts'
import { serve } from '../support/serve.ts'
import { startKeyway } from './running.ts'

async function readMailCheck(url: string) {
  const answer = await fetch(`${url}/readyz`)
  const { checks } = (await answer.json()) as { checks: { name: string; ok: boolean; detail?: string }[] }
  return { status: answer.status, ...checks.find(({ name }) => name === 'mail')! }
}

test('mail whose deliveries fail is reported as late whenever its next attempt is, and /readyz stays 200', async t => {
  const { url, services } = await startKeyway(t)
  const { storage, clock } = services
  const now = clock.now()
  const queueMail = (message: object) => storage.transaction(tx => tx.outbox.insert(aMessage(message)))
  const failingMail = { nextAttemptAt: now + 10 * MINUTE, attempts: 4, lastError: 'connect ECONNREFUSED' }
  await queueMail({ ...failingMail, createdAt: now - MINUTE / 2 })
  assert.deepEqual(await readMailCheck(url), { status: 200, name: 'mail', ok: true })
  await queueMail({ ...failingMail, createdAt: now - 2 * MINUTE })
  const lateMailCheck = await readMailCheck(url)
  assert.deepEqual([lateMailCheck.status, lateMailCheck.ok], [200, false])
  assert.match(lateMailCheck.detail!, /waited for 1\d\d s/)
})

test('a full disk is named by /readyz, which stays 200, until there is space again', async t => {
  const disk = mountSmallDisk()
  if (!disk) return t.skip('no disk can be mounted here')
  t.after(disk.unmount)
  const servedProcess = await serve({ KEYWAY_DATA_DIR: disk.path, KEYWAY_PORT: '0' })
  t.after(() => servedProcess.end('SIGKILL'))
  const fetchWriteCheck = async () => {
    const answer = await fetch(`${servedProcess.url}/readyz`)
    const { checks } = (await answer.json()) as { checks: { name: string; ok: boolean; detail?: string }[] }
    return { status: answer.status, ...checks.find(({ name }) => name === 'writes')! }
  }
  const filler = join(disk.path, 'filler')
  fill(filler)
  await until('the full disk is named', async () => !(await fetchWriteCheck()).ok)
  const { status, detail } = await fetchWriteCheck()
  assert.equal(status, 200)
  assert.match(detail!, /disk is full/)
  rmSync(filler)
  await until('writes succeed again', async () => (await fetchWriteCheck()).ok)
})
