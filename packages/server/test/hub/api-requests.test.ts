import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Answer, Json } from '@keyway/sdk/protocol'
import { API_ANSWER_TIMEOUT_MS, ApiRequests, MAX_API_REQUESTS_PER_OWNER } from '../../src/hub/api-requests.ts'
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

/** Has an agent answer a request with this data. */
async function answerWith(data: Json): Promise<Answer | null> {
  const requests = new ApiRequests('node')
  const { id, answer } = requests.begin('ann')!
  assert.equal(requests.receiveAnswer('ann', JSON.stringify({ reply_to: id, data })), true)
  return answer
}

describe('an answer of an agent', () => {
  test('is its `result` or its `error`, and any other data are themselves the result', async () => {
    const error = { code: 'failed', message: 'It failed.' }
    assert.deepEqual(await answerWith({ result: 1, more: 2 }), { result: 1 })
    assert.deepEqual(await answerWith({ result: null }), { result: null })
    assert.deepEqual(await answerWith({ error: { ...error, more: 1 }, result: 1 }), { error })
    const results: Json[] = [null, 7, 'text', false, [1], [{ result: 1 }], {}, { more: 1 }]
    for (const data of results)
      assert.deepEqual(await answerWith(data), { result: data }, JSON.stringify(data))
    const invalidErrors: Json[] = [
      null,
      'failed',
      7,
      [],
      {},
      { code: 'failed' },
      { message: 'It failed.' },
      { code: 1, message: 2 },
    ]
    for (const invalid of invalidErrors)
      assert.deepEqual(
        await answerWith({ error: invalid }),
        { result: { error: invalid } },
        JSON.stringify(invalid),
      )
  })

  test('is awaited for four seconds, or until the request ends', async t => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const requests = new ApiRequests('node')
    const answers: (Answer | null)[] = []
    const note = (answer: Answer | null) => void answers.push(answer)
    const slow = requests.begin('ann')!
    void slow.answer.then(note)
    requests.begin('ann')!.end()
    t.mock.timers.tick(API_ANSWER_TIMEOUT_MS - 1)
    await Promise.resolve()
    assert.deepEqual(answers, [])
    t.mock.timers.tick(1)
    assert.equal(await slow.answer, null)
    assert.equal(requests.receiveAnswer('ann', JSON.stringify({ reply_to: slow.id, data: 'late' })), false)
  })
})

test('the pending requests of one owner leave room for those of others, and make room when they end', () => {
  const requests = new ApiRequests('node', 1_000)
  const pending = Array.from({ length: MAX_API_REQUESTS_PER_OWNER }, () => requests.begin('ann'))
  assert.ok(pending.every(Boolean))
  assert.equal(requests.begin('ann'), null)
  assert.ok(requests.begin('bob'))
  pending[0]!.end()
  assert.ok(requests.begin('ann'))
  requests.stop()
})

test('a request that is too long for a frame, or whose agent is not connected, ends without a wait', async t => {
  const { services, url, hub, key, userId } = await open('sqlite', t)
  const agent = await connect(services, url, key)
  t.mock.timers.enable({ apis: ['setTimeout'] }) // No answer would ever time out.
  assert.equal(await hub.ask(userId, agent.id, 'x'.repeat(65_500)), null)
  assert.equal(await hub.ask(userId, key.id.replace(/.$/, '!'), 'x'), null)
  t.mock.timers.reset()
  await agent.flush()
  assert.deepEqual(agent.received, [])
})
