import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { createLog, type Log } from '../../src/log.ts'
import { keyPairOf, type SecretKey, sign } from '../../src/signing-keys/ed25519.ts'
import { createSigner, type Signer } from '../../src/signing-keys/signer.ts'
import { inTime, until } from '../support/patience.ts'

const { secretKey } = keyPairOf(randomBytes(32))
const otherKey = keyPairOf(randomBytes(32)).secretKey

test('a thread signs under load, with the same signatures as the event loop', async t => {
  const signer = openSigner(t)
  await makeBusy(signer)
  const jobs = Array.from({ length: 300 }, (_, n) => ({
    input: randomBytes(n).toString('base64url'),
    key: n % 7 === 0 ? otherKey : secretKey,
  }))
  await signMany(signer, 4)
  const signatures = jobs.map(({ input, key }) => signer.sign(input, key))
  assert.ok(signatures.every(each => each instanceof Promise))
  for (const [n, { input, key }] of jobs.entries())
    assert.deepEqual(await signatures[n], sign(Buffer.from(input), key), `signature ${n}`)
})

test('a thread verifies under load: a signature is valid for one message, one key and one encoding', async t => {
  const signer = openSigner(t)
  await makeBusy(signer)
  const signature = sign(Buffer.from('message'), secretKey)
  const changedSignature = Buffer.from(signature)
  changedSignature[63]! ^= 1
  await signMany(signer, 4)
  const results = [
    signer.verify('message', signature, secretKey),
    signer.verify('another', signature, secretKey),
    signer.verify('message', signature, otherKey),
    signer.verify('message', changedSignature, secretKey),
    signer.verify('message', signature.subarray(1), secretKey),
    signer.verify('message', Buffer.alloc(0), secretKey),
  ]
  assert.ok(results.every(each => each instanceof Promise))
  assert.deepEqual(await Promise.all(results), [true, false, false, false, false, false])
})

test('few signatures are made on the event loop, and start no thread', async t => {
  const signer = openSigner(t)
  for (let turn = 0; turn < 1000; turn++) await signMany(signer, 3)
  assert.equal(signer.hasThread, false)
  await makeBusy(signer)
  await signMany(signer, 3)
  assert.ok(signer.sign('after a turn with few signatures', secretKey) instanceof Buffer)
})

test('without permission no thread is started', async t => {
  const signer = createSigner(createLog('silent'))
  t.after(() => signer.close())
  for (let turn = 0; turn < 1000; turn++) await signMany(signer, 10)
  assert.equal(signer.hasThread, false)
})

test('signatures that the thread leaves when it ends are made on the event loop', async t => {
  const signer = openSigner(t)
  await makeBusy(signer)
  await signMany(signer, 4)
  const inputs = Array.from({ length: 1000 }, (_, n) => `message ${n}`)
  const signatures = inputs.map(input => signer.sign(input, secretKey))
  assert.ok(signatures.every(each => each instanceof Promise))
  await signer.close()
  assert.deepEqual(
    await Promise.all(signatures),
    inputs.map(input => sign(Buffer.from(input), secretKey)),
  )
  assert.equal(signer.hasThread, false)
  assert.ok(signer.sign('afterwards', secretKey) instanceof Buffer)
})

test('a thread that hangs is given up: the event loop makes what it owes, and all later signatures', async t => {
  const errors: string[] = []
  const log = createLog('silent')
  log.error = (_: unknown, message: string) => void errors.push(message)
  const signer = openSigner(t, log, openHangingWorker)
  await untilThreadRuns(signer)
  void signMany(signer, 4)
  await nextTurn()
  const signature = sign(Buffer.from('message'), secretKey)
  const results = [
    signer.sign('message', secretKey),
    signer.verify('message', signature, secretKey),
    signer.verify('another', signature, secretKey),
  ]
  assert.ok(results.every(each => each instanceof Promise))
  assert.deepEqual(await inTime('the signatures are made', Promise.all(results)), [signature, true, false])
  assert.equal(signer.hasThread, false)
  assert.ok(signer.sign('afterwards', secretKey) instanceof Buffer)
  assert.deepEqual(errors, ['the thread that signs tokens does not answer; the event loop signs from now on'])
})

/** A thread that reports that it is ready, and blocks in its first request without ending. */
const openHangingWorker = () =>
  new Worker(
    `const { parentPort } = require('node:worker_threads')
    const nothing = new Int32Array(new SharedArrayBuffer(4))
    parentPort.on('message', () => Atomics.wait(nothing, 0, 0))
    parentPort.postMessage('ready')`,
    { eval: true },
  )

function openSigner(t: TestContext, log: Log = createLog('silent'), openWorker?: () => Worker): Signer {
  const signer = createSigner(log, openWorker)
  signer.allowThread()
  t.after(() => signer.close())
  return signer
}

/** Requests signatures in each turn of the event loop until the thread runs, without awaiting them. */
async function untilThreadRuns(signer: Signer): Promise<void> {
  await until('the thread runs', async () => {
    for (let turn = 0; turn < 50 && !signer.hasThread; turn++) {
      for (let n = 0; n < 10; n++) void signer.sign(`${n}`, secretKey)
      await nextTurn()
    }
    return signer.hasThread
  })
}

/** Requests ten signatures at a time until the thread runs. */
async function makeBusy(signer: Signer): Promise<void> {
  await until('the thread runs', async () => {
    for (let turn = 0; turn < 50; turn++) await signMany(signer, 10)
    return signer.hasThread
  })
}

async function signMany(signer: Signer, count: number, key: SecretKey = secretKey): Promise<void> {
  const signatures = Array.from({ length: count }, (_, n) => signer.sign(`${n}`, key))
  await nextTurn()
  await Promise.all(signatures)
}
