import assert from 'node:assert/strict'
import { HUB_PROTOCOL } from '@keyway/sdk/protocol'
import type { Check, HubUnderTest, ReadyClient } from './hub-under-test.ts'

/** Longer than a hub takes to notice a break. */
const NOTICE_MS = 5000
const PAUSE_MS = 20

async function resume(hub: HubUnderTest, client: ReadyClient, lastSeq: number): Promise<ReadyClient> {
  return hub.connect({ headers: { 'keyway-resume': `${client.ready.resume_token}.${lastSeq}` } })
}

/** Breaks a connection and sends to it until the hub holds a message for it; returns the number of messages sent. */
async function breakOff(client: ReadyClient, sender: ReadyClient): Promise<number> {
  client.socket.terminate()
  const startedAt = performance.now()
  for (let probes = 1; performance.now() - startedAt < NOTICE_MS; probes++) {
    sender.send({ type: 'send', id: `probe-${probes}`, to: client.ready.connection_id, data: 'probe' })
    if ((await sender.next('sent')).held === 1) return probes
    await new Promise(resolve => setTimeout(resolve, PAUSE_MS))
  }
  throw new Error('the hub holds no connection that broke')
}

export const resumeChecks: Check[] = [
  {
    section: '5',
    promise: 'a connection that broke is resumed with the same id and every missed message, in order',
    async run(hub) {
      const [sender, first] = [await hub.connect(), await hub.connect()]
      assert.deepEqual([first.ready.resumed, first.ready.resume_seconds], [false, 120])
      assert.match(first.ready.resume_token ?? '', /^[A-Za-z0-9_-]{1,128}$/)
      const probes = await breakOff(first, sender)
      sender.send({ type: 'send', id: 'last', to: first.ready.connection_id, data: 'held' })
      const acknowledgement = await sender.next('sent')
      assert.deepEqual([acknowledgement.delivered, acknowledgement.held], [0, 1])
      const resumedClient = await resume(hub, first, 0)
      assert.equal(resumedClient.ready.resumed, true)
      assert.equal(resumedClient.ready.connection_id, first.ready.connection_id)
      assert.notEqual(resumedClient.ready.resume_token, first.ready.resume_token)
      for (let seq = 1; seq <= probes + 1; seq++) assert.equal((await resumedClient.next('message')).seq, seq)
    },
  },
  {
    section: '5',
    promise: 'a resume token is good once, and an unknown one is `resumed: false`',
    async run(hub) {
      const [sender, first] = [await hub.connect(), await hub.connect()]
      await breakOff(first, sender)
      assert.equal((await resume(hub, first, 0)).ready.resumed, true)
      const secondResumption = await resume(hub, first, 0)
      assert.equal(secondResumption.ready.resumed, false)
      assert.notEqual(secondResumption.ready.connection_id, first.ready.connection_id)
    },
  },
  {
    section: '5',
    promise: 'a connection that its agent closed with 1000 is not resumed',
    async run(hub) {
      const client = await hub.connect()
      client.socket.close(1000)
      await client.end()
      assert.equal((await resume(hub, client, 0)).ready.resumed, false)
    },
  },
  {
    section: '5',
    promise: 'resuming a connection that lives closes its old socket with 4409',
    async run(hub) {
      const client = await hub.connect()
      const token = await hub.token()
      const text = `resume.${client.ready.resume_token}.0`
      const resumedClient = hub.dial(null, { protocols: [HUB_PROTOCOL, `bearer.${token}`, text] })
      assert.equal((await resumedClient.next('ready')).resumed, true)
      assert.equal(await client.end(), '4409 resumed_elsewhere')
    },
  },
  {
    section: '1',
    promise: 'a malformed request to resume is refused with 400',
    async run(hub) {
      const token = await hub.token()
      for (const text of ['x', 'x.y', '.1', 'a.b.1']) {
        const { status } = await hub.dial(token, { headers: { 'keyway-resume': text } }).refusal()
        assert.equal(status, 400, text)
      }
    },
  },
  {
    section: '3',
    promise:
      'numbered sends are accepted once each and in order: repeated ones are acknowledged again, a gap is `out_of_order`',
    async run(hub) {
      const [sender, receiver] = [await hub.connect(), await hub.connect()]
      const receiverId = receiver.ready.connection_id
      const send = (seq: number) =>
        sender.send({ type: 'send', id: `${seq}`, to: receiverId, data: seq, seq })
      for (const seq of [1, 1, 3]) send(seq)
      for (const id of ['1', '1']) assert.deepEqual((await sender.next('sent')).id, id)
      assert.equal((await sender.next('error')).code, 'out_of_order')
      for (const seq of [2, 3]) send(seq)
      for (const seq of [1, 2, 3]) assert.equal((await receiver.next('message')).data, seq)
      await receiver.flush()
      assert.ok(!receiver.received.some(({ type }) => type === 'message'))
    },
  },
]
