import assert from 'node:assert/strict'
import type { Check, HubUnderTest, MadeKey, ReadyClient } from './hub-under-test.ts'

/** Lifetime of a key that expires during a check: long enough to connect with it. */
const KEY_LIFETIME_MS = 5000
/** Tolerance for the network and a busy machine. */
const TOLERANCE_MS = 5000

async function connectWith(hub: HubUnderTest, made: MadeKey): Promise<ReadyClient & { token: string }> {
  const { token } = await hub.exchange(made.key)
  return Object.assign(await hub.connect({ token }), { token })
}

export const endingChecks: Check[] = [
  {
    section: '5',
    promise: 'revoking a key closes all its connections with 4410, and no others',
    needsOwner: true,
    async run(hub) {
      const keyToRevoke = await hub.makeKey()
      const witness = await hub.connect()
      const clients = [await connectWith(hub, keyToRevoke), await connectWith(hub, keyToRevoke)]
      await hub.revoke(keyToRevoke)
      for (const client of clients) assert.equal(await client.end(), '4410 revoked')
      await witness.flush()
    },
  },
  {
    section: '1',
    promise: 'a revoked key’s outstanding token is accepted and closed with 4410 before `ready`',
    needsOwner: true,
    async run(hub) {
      const keyToRevoke = await hub.makeKey()
      const { token } = await hub.exchange(keyToRevoke.key)
      await hub.revoke(keyToRevoke)
      for (const tokenIn of ['header', 'subprotocol'] as const) {
        const client = hub.dial(token, { tokenIn })
        assert.equal(await client.end(), '4410 revoked')
        assert.deepEqual(client.received, [])
      }
    },
  },
  {
    section: '4',
    promise:
      'a token of a revoked key is refused for renewal; one of another key of the owner moves the connection to that key',
    needsOwner: true,
    async run(hub) {
      const [first, second, third] = [await hub.makeKey(), await hub.makeKey(), await hub.makeKey()]
      const client = await connectWith(hub, first)
      const { token: stale } = await hub.exchange(third.key)
      await hub.revoke(third)
      client.send({ type: 'token', token: stale })
      assert.equal((await client.next('error')).code, 'invalid_token')
      client.send({ type: 'token', token: (await hub.exchange(second.key)).token })
      await client.next('token_accepted')
      await hub.revoke(first)
      await client.flush()
      await hub.revoke(second)
      assert.equal(await client.end(), '4410 revoked')
    },
  },
  {
    section: '4',
    promise:
      'a key that expires soon gives a shorter lifetime, `token_expiring` at once, and 4408 within a second of its expiry',
    needsOwner: true,
    async run(hub) {
      const expiringKey = await hub.makeKey({
        expires_at: new Date(Date.now() + KEY_LIFETIME_MS).toISOString(),
      })
      const client = await connectWith(hub, expiringKey)
      assert.ok(client.ready.expires_in <= KEY_LIFETIME_MS / 1000)
      const startedAt = performance.now()
      assert.ok((await client.next('token_expiring')).expires_in <= KEY_LIFETIME_MS / 1000)
      assert.equal(await client.end(), '4408 token_expired')
      assert.ok(performance.now() - startedAt < KEY_LIFETIME_MS + 1000 + TOLERANCE_MS)
    },
  },
  {
    section: '2',
    promise: 'a `send` frame needs the scope agents:send',
    needsOwner: true,
    async run(hub) {
      const client = await connectWith(hub, await hub.makeKey({ scopes: ['agent:connect'] }))
      assert.deepEqual(client.ready.scopes, ['agent:connect'])
      client.send({ type: 'send', id: 'x', to: 'all', data: 1 })
      const { code, id } = await client.next('error')
      assert.deepEqual([code, id], ['insufficient_scope', 'x'])
    },
  },
  {
    section: '2',
    promise: 'a message over HTTP comes from "api" without a key',
    needsOwner: true,
    async run(hub) {
      const client = await connectWith(hub, await hub.makeKey())
      const path = `/v1/agents/${client.ready.connection_id}/messages`
      assert.deepEqual(await hub.owner('POST', path, { data: { n: 1 } }), { delivered: 1, held: 0 })
      const { from, from_key_id, data } = await client.next('message')
      assert.deepEqual({ from, from_key_id, data }, { from: 'api', from_key_id: null, data: { n: 1 } })
    },
  },
  {
    section: '5',
    promise: 'the owner lists a connection, and closes it with 1001',
    needsOwner: true,
    async run(hub) {
      const client = await connectWith(hub, await hub.makeKey())
      const { data } = await hub.owner<{ data: { connection_id: string }[] }>('GET', '/v1/agents?limit=100')
      assert.ok(data.some(({ connection_id }) => connection_id === client.ready.connection_id))
      await hub.owner('DELETE', `/v1/agents/${client.ready.connection_id}`)
      assert.equal(await client.end(), '1001 going_away')
    },
  },
]
