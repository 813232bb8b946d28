import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, test } from 'node:test'
import { until } from '../../server/test/support/patience.ts'
import { Keyway } from '../src/client.ts'
import type { KeywayError } from '../src/errors.ts'
import { fileTokenStore } from '../src/file-token-store.ts'
import type { StoredTokens } from '../src/token-store.ts'
import { sharedKeyway } from './support/keyway-server.ts'
import { createManualClock } from './support/manual-clock.ts'

interface TestContext {
  after(fn: () => void): void
}

const PROGRAM = join(import.meta.dirname, 'support/token-process.ts')
const TOKENS: StoredTokens = { access: 'a', refresh: 'r', sessionId: 's' }
/** After this time without a heartbeat, in milliseconds, another process takes over the lock. */
const HOLDER_TIMEOUT_MS = 5000

function tokensFile(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'keyway-tokens-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'private/session.json')
}

function start(t: TestContext, file: string, action: string, target = '') {
  const child = spawn(process.execPath, [PROGRAM, file, action, target], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.after(() => void child.kill('SIGKILL'))
  const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]()
  const line = async (): Promise<string | undefined> => (await lines.next()).value
  return { child, line }
}

async function assertExitsCleanly(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  assert.equal(child.exitCode, 0)
}

const isUnusable = (pattern: RegExp) => (error: KeywayError) =>
  error.code === 'invalid_configuration' && pattern.test(error.message)

describe('a file of tokens', () => {
  const newPerson = sharedKeyway()

  test('is readable by its user only, is replaced in one piece, and is removed', async t => {
    const file = tokensFile(t)
    const store = fileTokenStore(file)
    assert.equal(await store.get(), undefined)
    await store.set({ ...TOKENS, refreshKey: 'k' })
    assert.deepEqual(await store.get(), { ...TOKENS, refreshKey: 'k' })
    chmodSync(file, 0o644)
    const { ino } = statSync(file)
    await store.set(TOKENS)
    assert.notEqual(statSync(file).ino, ino, 'another file was moved into its place')
    assert.equal(statSync(file).mode & 0o777, 0o600)
    assert.equal(statSync(join(file, '..')).mode & 0o777, 0o700)
    assert.deepEqual(await fileTokenStore(file).get(), TOKENS)
    assert.deepEqual(readdirSync(join(file, '..')), ['session.json'])
    await store.delete()
    await store.delete()
    assert.equal(await store.get(), undefined)
  })

  test('with invalid content, or that cannot be used, is an error with the reason', async t => {
    const file = tokensFile(t)
    mkdirSync(join(file, '..'))
    for (const text of ['', '{', 'null', '[]', '{"access":"a","refresh":"r"}', '{"access":1}']) {
      writeFileSync(file, text)
      assert.throws(
        () => fileTokenStore(file).get(),
        isUnusable(/session\.json .*Remove it, and sign in again/),
      )
    }
    const storeInsideFile = fileTokenStore(join(file, 'below'))
    assert.throws(() => storeInsideFile.get(), isUnusable(/cannot be read: ENOTDIR/))
    assert.throws(() => storeInsideFile.set(TOKENS), isUnusable(/cannot be written: /))
    await assert.rejects(
      storeInsideFile.exclusive!(async () => {}),
      isUnusable(/orders refreshes, cannot be used: /),
    )
  })

  test('shared by four processes is refreshed once when the access token expired, and by one at a time when all ask for it', async t => {
    const { url, tokens } = await newPerson()
    const file = tokensFile(t)
    const store = fileTokenStore(file)
    const tokensBefore = (await tokens.get())!
    await store.set({ ...tokensBefore, access: 'expired' })
    const callers = Array.from({ length: 4 }, () => start(t, file, 'call', url))
    const counts = await Promise.all(callers.map(({ line }) => line()))
    assert.deepEqual(counts.sort(), [...Array(3).fill('refreshed 0'), 'refreshed 1'])
    const refreshers = Array.from({ length: 4 }, () => start(t, file, 'refresh', url))
    await Promise.all(refreshers.map(({ child }) => assertExitsCleanly(child)))
    for (const { line } of refreshers) assert.equal(await line(), 'refreshed 3')
    const keyway = new Keyway({ url, tokens: store })
    assert.equal((await keyway.sessions.list()).data.length, 1)
    const { sessionId, refreshKey, refresh } = (await store.get())!
    assert.deepEqual([sessionId, refreshKey], [tokensBefore.sessionId, undefined])
    assert.notEqual(refresh, tokensBefore.refresh)
  })

  test('whose refresh died before its answer arrived is refreshed by another process, with the same successor', async t => {
    const { url, tokens } = await newPerson()
    const file = tokensFile(t)
    await fileTokenStore(file).set((await tokens.get())!)
    const { child, line } = start(t, file, 'lose the answer', url)
    assert.equal(await line(), 'sent')
    child.kill('SIGKILL')
    const clock = createManualClock()
    const keyway = new Keyway({ url, tokens: fileTokenStore(file, { clock }) })
    let isDone = false
    const refreshing = keyway.refresh().finally(() => {
      isDone = true
    })
    await until('the lock of a dead process is taken over', () => {
      clock.advance(1000)
      return isDone
    })
    assert.ok(await refreshing)
    assert.equal((await keyway.sessions.list()).data.length, 1)
  })

  test('a link in the place of the lock is refused, and the folder that it leads to unchanged', async t => {
    const file = tokensFile(t)
    const otherFolder = join(file, '../other')
    mkdirSync(otherFolder, { recursive: true })
    for (const name of ['1', '2', '3']) writeFileSync(join(otherFolder, name), 'over')
    symlinkSync(otherFolder, join(file, '../.session.json.lock'))
    const work = fileTokenStore(file).exclusive!(async () => 'done')
    await assert.rejects(work, isUnusable(/orders refreshes, cannot be used: it is a symbolic link/))
    assert.deepEqual(readdirSync(otherFolder), ['1', '2', '3'])
  })

  test('is locked while its holder lives, and for five seconds after its last heartbeat', async t => {
    const file = tokensFile(t)
    const { child, line } = start(t, file, 'hold')
    assert.equal(await line(), 'holding')
    const turnFile = join(file, '../.session.json.lock/1')
    const clock = createManualClock()
    let polls = 0
    const countingClock = {
      ...clock,
      after(ms: number, callback: () => void) {
        polls++
        return clock.after(ms, callback)
      },
    }
    const waitForTwoPolls = async () => {
      const pollsBefore = polls
      await until('two polls', () => {
        clock.advance(0)
        return polls > pollsBefore + 1 || void clock.advance(75)
      })
    }
    let isTaken = false
    const waitingWork = fileTokenStore(file, { clock: countingClock }).exclusive!(async () => {
      isTaken = true
    })
    for (let beat = 0; beat < 2; beat++) {
      const { mtimeMs } = statSync(turnFile)
      await until('a heartbeat', () => statSync(turnFile).mtimeMs !== mtimeMs)
      await waitForTwoPolls()
      clock.advance(HOLDER_TIMEOUT_MS - 1000)
      assert.equal(isTaken, false)
    }
    child.kill('SIGKILL')
    await once(child, 'exit')
    await waitForTwoPolls()
    assert.equal(isTaken, false)
    clock.advance(HOLDER_TIMEOUT_MS)
    await until('the lock is taken over', () => {
      clock.advance(75)
      return isTaken
    })
    await waitingWork
    assert.deepEqual(readdirSync(join(turnFile, '..')).sort(), ['1', '2'])
  })

  test('is used by one process at a time, also when several take over from one that was killed', async t => {
    const file = tokensFile(t)
    const counterFile = join(file, '../../count')
    writeFileSync(counterFile, '0')
    const firstHolder = start(t, file, 'hold')
    assert.equal(await firstHolder.line(), 'holding')
    const incrementers = Array.from({ length: 4 }, () => start(t, file, 'add', counterFile))
    await Promise.all(incrementers.map(({ child }) => once(child, 'spawn')))
    firstHolder.child.kill('SIGKILL')
    await Promise.all(incrementers.map(({ child }) => assertExitsCleanly(child)))
    assert.equal(readFileSync(counterFile, 'utf8'), '20')
  })
})
