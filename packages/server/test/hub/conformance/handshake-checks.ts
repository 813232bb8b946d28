import assert from 'node:assert/strict'
import { HUB_PROTOCOL } from '@keyway/sdk/protocol'
import type { Check } from './hub-under-test.ts'

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const UPGRADE = {
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
}

export const handshakeChecks: Check[] = [
  {
    section: '1',
    promise: 'a key is exchanged for a token, its owner’s id and a lifetime in whole seconds',
    async run(hub) {
      const { token, agent_id, expires_in } = await hub.exchange()
      assert.equal(typeof token, 'string')
      assert.match(agent_id, UUID)
      assert.ok(
        Number.isInteger(expires_in) && expires_in > 0 && expires_in <= 900,
        `expires_in ${expires_in}`,
      )
    },
  },
  {
    section: '1',
    promise: 'the token connects as a header, with subprotocol keyway.hub.v1 or none',
    async run(hub) {
      assert.equal((await hub.connect()).socket.protocol, HUB_PROTOCOL)
      assert.equal((await hub.connect({ protocols: [] })).socket.protocol, '')
    },
  },
  {
    section: '1',
    promise: 'the token connects as second subprotocol, which is never selected',
    async run(hub) {
      const client = await hub.connect({ tokenIn: 'subprotocol' })
      assert.equal(client.socket.protocol, HUB_PROTOCOL)
    },
  },
  {
    section: '1',
    promise: 'no extension is negotiated, though compression was offered',
    async run(hub) {
      assert.equal((await hub.connect()).socket.extensions, '')
    },
  },
  {
    section: '2',
    promise: '`ready` is the first frame and has every field',
    async run(hub) {
      const { agent_id } = await hub.exchange()
      const { ready } = await hub.connect()
      for (const field of ['connection_id', 'agent_id', 'key_id'] as const) assert.match(ready[field], UUID)
      assert.equal(ready.agent_id, agent_id)
      assert.ok(ready.key_name === null || typeof ready.key_name === 'string')
      assert.ok(Array.isArray(ready.scopes))
      assert.match(ready.expires_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      assert.ok(Number.isInteger(ready.expires_in) && ready.expires_in > 0)
      assert.equal(ready.heartbeat_seconds, 25)
      assert.notEqual((await hub.connect()).ready.connection_id, ready.connection_id)
    },
  },
  {
    section: '1',
    promise: 'two credentials are refused with 400',
    async run(hub) {
      const token = await hub.token()
      const { status } = await hub.dial(token, { protocols: [HUB_PROTOCOL, `bearer.${token}`] }).refusal()
      assert.equal(status, 400)
    },
  },
  {
    section: '1',
    promise: 'subprotocols without keyway.hub.v1 are refused with 400',
    async run(hub) {
      assert.equal((await hub.dial(await hub.token(), { protocols: ['chat'] }).refusal()).status, 400)
    },
  },
  {
    section: '1',
    promise: 'a missing credential is refused with 401 authentication_required',
    async run(hub) {
      const { status, problem } = await hub.dial(null).refusal()
      assert.deepEqual([status, problem.code], [401, 'authentication_required'])
    },
  },
  {
    section: '1',
    promise: 'an invalid token is refused with 401 as header, and closed with 4401 as subprotocol',
    async run(hub) {
      const token = await hub.token()
      for (const bad of ['garbage', `${token}x`, token.slice(0, -4)]) {
        const { status, problem } = await hub.dial(bad).refusal()
        assert.deepEqual([status, problem.code], [401, 'invalid_token'])
        assert.equal(await hub.dial(bad, { tokenIn: 'subprotocol' }).end(), '4401 invalid_token')
      }
    },
  },
  {
    section: '1',
    promise:
      'a token in the URL is refused with 401 even beside a valid one, and the answer shows the accepted ways',
    async run(hub) {
      const token = await hub.token()
      for (const path of [`?token=${token}`, `?access_token=${token}`]) {
        const { status, problem } = await hub.dial(token, { path }).refusal()
        assert.equal(status, 401)
        assert.match(problem.detail, /Authorization: Bearer[\s\S]*bearer\./)
      }
    },
  },
  {
    section: '1',
    promise: 'a page of an unlisted origin is refused with 403, and one of the service’s own origin connects',
    async run(hub) {
      const token = await hub.token()
      for (const origin of ['https://elsewhere.invalid', 'null']) {
        assert.equal((await hub.dial(token, { headers: { origin } }).refusal()).status, 403, origin)
      }
      await hub.connect({ headers: { origin: hub.origin } })
    },
  },
  {
    section: '1',
    promise: 'a request without upgrade, or for another version, is refused with 426',
    async run(hub) {
      const authorization = `Bearer ${await hub.token()}`
      assert.deepEqual(await hub.handshake({ authorization }), { status: 426, upgrade: 'websocket' })
      const oldVersionHeaders = { ...UPGRADE, authorization, 'sec-websocket-version': '8' }
      assert.equal((await hub.handshake(oldVersionHeaders)).status, 426)
    },
  },
  {
    section: '1',
    promise: 'a malformed handshake is refused with 400',
    async run(hub) {
      const authorization = `Bearer ${await hub.token()}`
      assert.equal(
        (await hub.handshake({ ...UPGRADE, authorization, 'sec-websocket-key': 'short' })).status,
        400,
      )
    },
  },
]
