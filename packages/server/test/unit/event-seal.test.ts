import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSecrets } from '../../src/secrets.ts'
import { createEventSeal } from '../../src/storage/event-seal.ts'

const MINUTE_MS = 60_000
const EVENT = { type: 'mail.queued' }
const [OLD_SECRET, NEW_SECRET] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]

function createTestSeal(
  secrets: Buffer[],
  options: { at?: number; channel?: string; maxPartBytes?: number } = {},
) {
  let now = options.at ?? 1_000_000
  const { channel = 'events', maxPartBytes = 1000 } = options
  const seal = createEventSeal({ secrets: createSecrets(secrets), channel, maxPartBytes, now: () => now })
  return Object.assign(seal, {
    at(ms: number) {
      now = ms
    },
  })
}

const outcomeOf = (seal: ReturnType<typeof createTestSeal>, part: Buffer) => {
  const result = seal.open(part)
  return result === 'part' ? 'part' : 'rejected' in result ? result.rejected : 'opened'
}

test('the first listed secret seals, every listed one opens, and no other does', () => {
  const [sealed] = createTestSeal([OLD_SECRET, NEW_SECRET]).seal(EVENT)
  assert.deepEqual(createTestSeal([NEW_SECRET, OLD_SECRET]).open(sealed!), { value: EVENT })
  assert.equal(outcomeOf(createTestSeal([NEW_SECRET]), sealed!), 'unknown_secret')
})

test('an event with a changed bit, a missing byte or another channel is refused', () => {
  const [sealed] = createTestSeal([OLD_SECRET]).seal(EVENT)
  for (let bit = 0; bit < sealed!.length * 8; bit++) {
    const changedPart = Buffer.from(sealed!)
    changedPart[bit >> 3]! ^= 1 << (bit & 7)
    assert.match(
      outcomeOf(createTestSeal([OLD_SECRET]), changedPart),
      /not_authentic|malformed|unknown_secret/,
      `bit ${bit}`,
    )
  }
  for (let length = 0; length < sealed!.length; length++)
    assert.notEqual(outcomeOf(createTestSeal([OLD_SECRET]), sealed!.subarray(0, length)), 'opened')
  assert.equal(outcomeOf(createTestSeal([OLD_SECRET], { channel: 'others' }), sealed!), 'not_authentic')
})

test('an event opens once, also delayed and out of order', () => {
  const sender = createTestSeal([OLD_SECRET])
  const receiver = createTestSeal([OLD_SECRET])
  const parts = Array.from({ length: 100 }, () => sender.seal(EVENT)[0]!)
  for (const part of [parts[50]!, ...parts.slice(0, 50).reverse(), ...parts.slice(51)])
    assert.equal(outcomeOf(receiver, part), 'opened')
  for (const part of parts) assert.equal(outcomeOf(receiver, part), 'replayed')
})

test('an event older than the replay window is refused as replayed', () => {
  const sender = createTestSeal([OLD_SECRET])
  const receiver = createTestSeal([OLD_SECRET])
  const parts = Array.from({ length: 16_385 }, () => sender.seal(EVENT)[0]!)
  assert.equal(outcomeOf(receiver, parts.at(-1)!), 'opened')
  assert.equal(outcomeOf(receiver, parts[0]!), 'replayed')
  assert.equal(outcomeOf(receiver, parts[1]!), 'opened')
})

test('a node that starts later accepts events sealed in the last minute, and none older', () => {
  const [sealed] = createTestSeal([OLD_SECRET], { at: 1_000_000 }).seal(EVENT)
  for (const [at, expected] of [
    [1_000_000 + MINUTE_MS, 'opened'],
    [1_000_001 + MINUTE_MS, 'stale'],
    [1_000_000 - MINUTE_MS, 'opened'],
    [999_999 - MINUTE_MS, 'stale'],
  ] as const)
    assert.equal(outcomeOf(createTestSeal([OLD_SECRET], { at }), sealed!), expected)
})

test('parts of other senders and forged parts do not disturb a multi-part event', () => {
  const sender = createTestSeal([OLD_SECRET])
  const otherSender = createTestSeal([OLD_SECRET])
  const receiver = createTestSeal([OLD_SECRET])
  const longEvent = { type: 'long', text: 'ü€😀'.repeat(2000) }
  const parts = sender.seal(longEvent)
  const otherParts = otherSender.seal(longEvent)
  assert.ok(parts.length > 10)
  parts.forEach((part, index) => {
    const forgedPart = Buffer.from(part)
    forgedPart[40]! ^= 1
    assert.equal(outcomeOf(receiver, forgedPart), 'not_authentic')
    const expected = index === parts.length - 1 ? { value: longEvent } : 'part'
    assert.deepEqual(receiver.open(part), expected)
    assert.deepEqual(receiver.open(otherParts[index]!), expected)
    assert.equal(outcomeOf(receiver, part), 'replayed')
  })
})

test('a part without its predecessors is incomplete, and the next event opens', () => {
  const sender = createTestSeal([OLD_SECRET])
  const receiver = createTestSeal([OLD_SECRET])
  const parts = sender.seal({ text: 'x'.repeat(5000) })
  assert.equal(outcomeOf(receiver, parts[0]!), 'part')
  for (const part of parts.slice(2)) assert.equal(outcomeOf(receiver, part), 'incomplete')
  assert.deepEqual(receiver.open(sender.seal(EVENT)[0]!), { value: EVENT })
})

test('the number of remembered senders is bounded, and forged senders do not count', () => {
  const receiver = createTestSeal([OLD_SECRET])
  const [sealed] = createTestSeal([OLD_SECRET]).seal(EVENT)
  for (let sender = 0; sender < 2000; sender++) {
    const forgedSender = Buffer.from(sealed!)
    forgedSender.writeUInt32BE(sender, 5)
    assert.equal(outcomeOf(receiver, forgedSender), 'not_authentic')
  }
  const outcomes = Array.from({ length: 1001 }, () =>
    outcomeOf(receiver, createTestSeal([OLD_SECRET]).seal(EVENT)[0]!),
  )
  assert.deepEqual(new Set(outcomes.slice(0, 1000)), new Set(['opened']))
  assert.equal(outcomes[1000], 'too_many')
})
