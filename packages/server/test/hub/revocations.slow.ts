import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { WebSocket } from 'ws'
import { freePort } from '../support/free-port.ts'
import { createJourney } from '../support/journey.ts'
import { quantile } from '../support/nodes.ts'
import { serve, temporaryFolder } from '../support/serve.ts'
import { Client } from './client.ts'

const ROUNDS = 200
const BYSTANDERS = 200
const TOKENS_EACH = 3

test('revoking a key closes its connections with 4410 in under 100 ms (p99 of 200), and its tokens stay refused', {
  timeout: 180_000,
}, async t => {
  const folder = temporaryFolder()
  const settings = {
    KEYWAY_DATA_DIR: folder.path,
    KEYWAY_PORT: String(await freePort()),
    KEYWAY_MAX_ACTIVE_KEYS: '1000',
    KEYWAY_KEY_CREATION_LIMITS: '1000/hour',
    KEYWAY_FAILURE_LIMITS: '100000/minute',
  }
  let server = await serve(settings)
  t.after(async () => {
    await server.end('SIGKILL')
    folder.remove()
  })
  const journey = createJourney(server.url)
  await journey.sendLink('ada@example.com')
  const { access_token } = await journey.verify('ada@example.com', await journey.readToken('ada@example.com'))
  const bystandersKey = await journey.createKey(access_token, 'spared')
  const bystanders: WebSocket[] = []
  while (bystanders.length < BYSTANDERS)
    bystanders.push(await journey.connect(await journey.exchange(bystandersKey.key)))

  const msAfterRequest: number[] = []
  const msAfterAnswer: number[] = []
  const revokedTokens: string[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const { id, key } = await journey.createKey(access_token, `doomed ${round}`)
    const tokens = await Promise.all(Array.from({ length: TOKENS_EACH }, () => journey.exchange(key)))
    const sockets = await Promise.all(tokens.map(token => journey.connect(token)))
    revokedTokens.push(...tokens)
    const requestedAt = performance.now()
    const closed = Promise.all(sockets.map(endOf))
    await journey.revoke(access_token, id)
    const answeredAt = performance.now()
    for (const { code, at } of await closed) {
      assert.equal(code, 4410)
      msAfterRequest.push(at - requestedAt)
      msAfterAnswer.push(Math.max(0, at - answeredAt))
    }
    await assert.rejects(journey.exchange(key), /401/)
  }
  report('from the request to 4410', msAfterRequest)
  report('from the answer to 4410', msAfterAnswer)

  assert.deepEqual(await closesOf(revokedTokens), ['4410 revoked'])
  assert.ok(bystanders.every(({ readyState }) => readyState === WebSocket.OPEN))
  for (const socket of bystanders) socket.terminate()
  await server.end('SIGTERM')
  server = await serve(settings)
  assert.deepEqual(await closesOf(revokedTokens), ['4410 revoked'])
  t.diagnostic(`${revokedTokens.length} outstanding tokens were refused, before and after a restart`)
  assert.ok(quantile(msAfterRequest, 0.99) < 100)

  function report(what: string, figures: number[]): void {
    const [p50, p99, worst] = [0.5, 0.99, 1].map(at => `${quantile(figures, at).toFixed(1)} ms`)
    t.diagnostic(`${what}: p50 ${p50}, p99 ${p99}, worst ${worst} of ${figures.length}`)
  }

  /** The distinct close codes and reasons of connections with these tokens. */
  async function closesOf(tokens: readonly string[]): Promise<string[]> {
    const closeStatuses = new Set<string>()
    for (const token of tokens)
      closeStatuses.add(await new Client(`${server.url.replace('http', 'ws')}/hub`, token).end())
    return [...closeStatuses]
  }
})

async function endOf(socket: WebSocket): Promise<{ code: number; at: number }> {
  const [code] = await once(socket, 'close')
  return { code, at: performance.now() }
}
