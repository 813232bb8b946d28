import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { MAX_API_REQUESTS_PER_OWNER } from '../../src/hub/api-requests.ts'
import { openServices } from '../support/services.ts'
import { connect, makeKey, open, openHub } from './fixture.ts'

describe('requests of the pages to agents', () => {
  test('an agent on another node answers a request, and needs no scope to send for it', async t => {
    const services = await openServices('sqlite', t)
    const { user } = await services.signIn('ada@example.com')
    const localNode = await openHub(services, t)
    const remoteNode = await openHub(services, t)
    const key = await makeKey(services, user.id, { scopes: ['agent:connect'] })
    for (const node of [localNode, remoteNode]) {
      const agent = await connect(services, node.url, key)
      const pendingRequest = localNode.hub.ask(user.id, agent.id, { hello: 'there' })
      const { id, from, from_key_id, data } = await agent.next('message')
      assert.match(id, /^request\.[\w-]{22}$/)
      assert.match(from, /^api\./)
      assert.deepEqual([from_key_id, data], [null, { hello: 'there' }])
      agent.send({ type: 'send', id: 'a', to: from, reply_to: id, data: { result: 'Hello' } })
      assert.equal((await agent.next('sent')).delivered, 1)
      assert.deepEqual((await pendingRequest)?.answer, { result: 'Hello' })

      agent.send({ type: 'send', id: 'b', to: from, reply_to: id, data: { result: 'Hello again' } })
      assert.equal((await agent.next('sent')).delivered, 0)
      agent.send({ type: 'send', id: 'c', to: 'all', data: 'to other connections' })
      assert.equal((await agent.next('error')).code, 'insufficient_scope')
    }
  })

  test('only the owner’s agents that got a request can answer it', async t => {
    const { services, url, hub, key, userId } = await open('sqlite', t)
    const agent = await connect(services, url, key)
    const mallory = await services.signIn('mallory@example.com')
    const strangersClient = await connect(services, url, await makeKey(services, mallory.user.id))
    const pendingRequest = hub.ask(userId, agent.id, null)
    const { id, from } = await agent.next('message')
    strangersClient.send({ type: 'send', id: 'a', to: from, reply_to: id, data: 'forged' })
    assert.equal((await strangersClient.next('sent')).delivered, 0)
    agent.send({ type: 'send', id: 'b', to: from, reply_to: 'request.guessed', data: 'guessed' })
    assert.equal((await agent.next('sent')).delivered, 0)
    const error = { code: 'no_handler', message: 'This agent answers no requests.' }
    agent.send({ type: 'send', id: 'c', to: from, reply_to: id, data: { error } })
    assert.deepEqual((await pendingRequest)?.answer, { error })
  })

  test('a request to an agent that is not connected ends at once, one without an answer when the node stops', async t => {
    const { services, url, hub, key, userId } = await open('sqlite', t)
    assert.equal(await hub.ask(userId, key.id, 'x'), null)
    const agent = await connect(services, url, key)
    const pendingRequests = Array.from({ length: MAX_API_REQUESTS_PER_OWNER }, () =>
      hub.ask(userId, agent.id, 'x'),
    )
    for (const _ of pendingRequests) await agent.next('message')
    await assert.rejects(hub.ask(userId, agent.id, 'x'), { code: 'rate_limited' })
    await hub.stop()
    for (const outcome of await Promise.all(pendingRequests)) assert.equal(outcome?.answer, null)
  })
})
