import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import { inTime } from '../../support/patience.ts'
import { type ClientCheck, NotSupported } from './check.ts'
import type { Frame, ScriptedConnection } from './scripted-connection.ts'
import type { ScriptedHub } from './scripted-hub.ts'

const VIOLATION_WAIT_MS = 1_000
const DRAINING = { type: 'draining', close_in_seconds: 10 } as const

/** The next connection of the client, which must offer to resume the previous one. */
async function nextResuming(hub: ScriptedHub): Promise<ScriptedConnection> {
  const nextConnection = await hub.arrived()
  if (!nextConnection.resume) throw new NotSupported('it does not resume connections')
  return nextConnection
}

function seqOf(frame: Frame): number {
  if (typeof frame.seq !== 'number') throw new NotSupported('it does not number its sends')
  return frame.seq
}

export const movingChecks: ClientCheck[] = [
  {
    section: '5',
    promise: 'on `draining` the client opens another connection before it leaves the old one, and moves',
    async run({ hub }) {
      const oldConnection = await hub.connected()
      await oldConnection.works()
      oldConnection.send(DRAINING)
      const newConnection = await hub.arrived()
      assert.ok(oldConnection.isOpen, 'the old connection is open until the new one is ready')
      const earlyEcho = await oldConnection.works('before the other is ready')
      newConnection.ready()
      newConnection.message('m1', 'on the new one')
      await newConnection.echoes('on the new one', { repeated: earlyEcho })
      oldConnection.message('m1', 'on the new one') // both connections receive for a moment
      oldConnection.close(1012, 'restarting')
      await newConnection.works()
      await wait(VIOLATION_WAIT_MS)
      assert.equal(hub.connectionCount, 2)
      const unexpectedSends = [...oldConnection.frames.rest, ...newConnection.frames.rest].filter(
        ({ type }) => type === 'send',
      )
      assert.deepEqual(unexpectedSends, [], 'a message that arrives over both is handled once')
    },
  },
  {
    section: '5',
    promise: 'after `draining` 4409 of the old connection is no reason to stop or to reconnect',
    async run({ hub }) {
      const oldConnection = await hub.connected()
      await oldConnection.works()
      oldConnection.send(DRAINING)
      const newConnection = await nextResuming(hub)
      oldConnection.close(4409, 'resumed_elsewhere')
      await inTime('the old connection closes', oldConnection.closed)
      newConnection.ready({ connection_id: oldConnection.id, resumed: true })
      await newConnection.works()
      await wait(VIOLATION_WAIT_MS)
      assert.equal(hub.connectionCount, 2)
    },
  },
  {
    section: '5',
    promise: 'after 4409 by an attempt of its own that was lost before `ready` the client connects again',
    async run({ hub }) {
      const oldConnection = await hub.connected()
      await oldConnection.works()
      oldConnection.send(DRAINING)
      const lostAttempt = await nextResuming(hub)
      lostAttempt.cut()
      await inTime('the attempt is lost', lostAttempt.closed)
      oldConnection.close(4409, 'resumed_elsewhere')
      await (await hub.connected()).works()
    },
  },
  {
    section: '5',
    promise: 'a resumed connection continues: a `seq` that was seen is skipped, the others are new',
    async run({ hub }) {
      const firstConnection = await hub.connected()
      for (const seq of [1, 2, 3]) {
        firstConnection.message(`m${seq}`, seq, { seq })
        await firstConnection.echoes(seq)
      }
      firstConnection.cut()
      const secondConnection = await nextResuming(hub)
      assert.deepEqual(secondConnection.resume, { token: `resume-${firstConnection.id}`, lastSeq: 3 })
      secondConnection.ready({ connection_id: firstConnection.id, resumed: true })
      for (const seq of [3, 4, 5]) secondConnection.message(`again-${seq}`, seq, { seq })
      await secondConnection.echoes(4)
      await secondConnection.echoes(5)
      secondConnection.cut()
      const thirdConnection = await nextResuming(hub)
      assert.deepEqual(thirdConnection.resume, { token: `resume-${secondConnection.id}`, lastSeq: 5 })
    },
  },
  {
    section: '5',
    promise: 'a connection that was not resumed counts messages from 1',
    async run({ hub }) {
      const firstConnection = await hub.connected()
      for (const seq of [1, 2]) {
        firstConnection.message(`m${seq}`, seq, { seq })
        await firstConnection.echoes(seq)
      }
      firstConnection.cut()
      const secondConnection = await nextResuming(hub)
      secondConnection.ready()
      secondConnection.message('new', 'new', { seq: 1 })
      await secondConnection.echoes('new')
      secondConnection.cut()
      assert.deepEqual((await nextResuming(hub)).resume, {
        token: `resume-${secondConnection.id}`,
        lastSeq: 1,
      })
    },
  },
  {
    section: '3',
    promise: 'what was not acknowledged is sent again with its number after `resumed: true`',
    async run({ hub }) {
      const firstConnection = await hub.connected()
      firstConnection.message('a', 'a', { seq: 1 })
      assert.equal(seqOf(await firstConnection.echoes('a')), 1)
      firstConnection.message('b', 'b', { seq: 2 })
      const firstEcho = await firstConnection.echoes('b', { acknowledges: false })
      assert.equal(seqOf(firstEcho), 2)
      firstConnection.cut()
      const secondConnection = await nextResuming(hub)
      secondConnection.ready({ connection_id: firstConnection.id, resumed: true })
      const repeatedEcho = await secondConnection.echoes('b')
      assert.deepEqual([repeatedEcho.seq, repeatedEcho.id], [2, firstEcho.id])
      secondConnection.message('c', 'c', { seq: 3 })
      assert.equal((await secondConnection.echoes('c')).seq, 3)
    },
  },
  {
    section: '3',
    promise: 'numbers begin at 1 after `resumed: false`, also of what is sent again',
    async run({ hub }) {
      const firstConnection = await hub.connected()
      firstConnection.message('a', 'a')
      seqOf(await firstConnection.echoes('a'))
      firstConnection.message('b', 'b')
      const firstEcho = await firstConnection.echoes('b', { acknowledges: false })
      firstConnection.cut()
      const secondConnection = await hub.connected()
      const repeatedEcho = await secondConnection.echoes('b')
      assert.deepEqual([repeatedEcho.seq, repeatedEcho.id], [1, firstEcho.id])
      secondConnection.message('c', 'c')
      assert.equal((await secondConnection.echoes('c')).seq, 2)
    },
  },
  {
    section: '3',
    promise: 'after `rate_limited` and `out_of_order` sends are repeated from the refused number, in order',
    async run({ hub }) {
      const connection = await hub.connected()
      for (const name of ['a', 'b', 'c']) connection.message(name, name)
      const sentFrames = [] as Frame[]
      for (const name of ['a', 'b', 'c'])
        sentFrames.push(await connection.echoes(name, { acknowledges: false }))
      const [a, b, c] = sentFrames as [Frame, Frame, Frame]
      assert.deepEqual([seqOf(a), b.seq, c.seq], [1, 2, 3])
      connection.acknowledge(a)
      connection.send({ type: 'error', code: 'rate_limited', detail: 'Wait.', id: b.id! })
      connection.send({ type: 'error', code: 'out_of_order', detail: 'Wait.', id: c.id! })
      for (const firstEcho of [b, c]) {
        const repeatedEcho = await connection.echoes(firstEcho === b ? 'b' : 'c')
        assert.deepEqual([repeatedEcho.seq, repeatedEcho.id], [firstEcho.seq, firstEcho.id])
      }
      await connection.works('d')
    },
  },
  {
    section: '3',
    promise: 'without numbers: a send that was `rate_limited` is sent again after a second',
    async run({ hub }) {
      const connection = await hub.connected({ resume_token: undefined as never })
      connection.message('a', 'a')
      const firstEchoFrame = await connection.echoes('a', { acknowledges: false })
      connection.send({ type: 'error', code: 'rate_limited', detail: 'Wait.', id: firstEchoFrame.id! })
      assert.equal((await connection.echoes('a')).id, firstEchoFrame.id)
    },
  },
  {
    section: '3',
    promise: 'a request gets an answer, which says so where the client answers none',
    async run({ hub }) {
      const connection = await hub.connected()
      const id = `request.${'a'.repeat(32)}`
      connection.message(id, 'who are you?')
      const answer = await connection.next('send')
      if (answer.reply_to === undefined) throw new NotSupported('it knows no requests')
      connection.acknowledge(answer)
      assert.deepEqual([answer.reply_to, answer.to], [id, 'peer'])
      const data = answer.data as { result?: Json; error?: { code: string } }
      assert.ok('result' in data || data.error?.code === 'no_handler', JSON.stringify(answer))
      await connection.works()
    },
  },
]

type Json = Frame[string]
