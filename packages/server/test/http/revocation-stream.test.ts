import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { MAX_STREAMS_PER_APP } from '../../src/http/routes/revocations.ts'
import { type EngineName, forEachEngine } from '../support/engines.ts'
import { basicAuthorization, openServer } from '../support/http.ts'
import { inTime, patienceMs } from '../support/patience.ts'

/** A stream checks its credential once a second, and otherwise only before it keeps the connection alive, every 15. */
const NOTICED_WITHIN_MS = 10_000

forEachEngine(engine => {
  test('a revocation stream ends soon after its secret is replaced, and sends nothing more', async t => {
    const { server, secret, follow, replaceSecret } = await openFollowers(engine, t)
    const { tokens } = await server.signIn('ada@example.com')
    const { id } = await server.createKey(tokens.accessToken)
    const stream = await follow(secret)
    const otherStream = await follow(await replaceSecret())
    // Only the newest two secrets are valid, so this third one invalidates `secret`.
    await replaceSecret()
    await server.call('DELETE', `/v1/api-keys/${id}`, { token: tokens.accessToken })
    const startedAt = performance.now()
    const text = await stream.rest()
    assert.ok(performance.now() - startedAt < patienceMs(NOTICED_WITHIN_MS))
    assert.doesNotMatch(text, new RegExp(id))
    assert.match(await otherStream.until(id), /event: revocation/)
    assert.equal((await follow(secret)).status, 401)
  })
})

test('the number of revocation streams of one app is limited, closed streams no longer count, and other apps are not refused', async t => {
  const { server, secret, follow } = await openFollowers('sqlite', t)
  const streams = []
  for (let n = 0; n < MAX_STREAMS_PER_APP; n++) streams.push(await follow(secret))
  assert.deepEqual([...new Set(streams.map(({ status }) => status))], [200])
  assert.equal((await follow(secret)).status, 429)
  assert.equal((await follow(await server.registerApp('other'), 'other')).status, 200)
  assert.equal(
    (await server.get('/v1/revocations', { headers: basicAuthorization('follower', secret) })).status,
    200,
  )
  streams[0]!.leave()
  let nextStream = await follow(secret)
  while (nextStream.status === 429) nextStream = await follow(secret) // Ends once the server has noticed the disconnect.
  assert.equal(nextStream.status, 200)
})

forEachEngine(engine =>
  test('a follower that was cut off within a page gets the rest of it from the last event id that it received', async t => {
    const { server, secret, follow } = await openFollowers(engine, t)
    const { tokens } = await server.signIn('ada@example.com')
    const keyIds = []
    for (let n = 0; n < 3; n++) {
      const { id } = await server.createKey(tokens.accessToken)
      await server.call('DELETE', `/v1/api-keys/${id}`, { token: tokens.accessToken })
      keyIds.push(id)
      server.clock.advance(1000)
    }
    // For ten seconds after a revocation the ids of events are cursors before it, since transactions may commit late
    // (revocation-feed.ts): without this pause the follower would get all three revocations again.
    server.clock.advance(60_000)
    const wholePage = await (await follow(secret)).until(keyIds[2]!)
    const [, firstId] = new RegExp(`id: (\\S+)\\nevent: revocation\\ndata: \\{[^}]*${keyIds[0]}`).exec(
      wholePage,
    )!
    const follower = await follow(secret, 'follower', firstId)
    const rest = await inTime('the rest of the page', follower.until(keyIds[2]!))
    assert.deepEqual(
      keyIds.filter(id => rest.includes(id)),
      keyIds.slice(1),
    )
  }),
)

async function openFollowers(engine: EngineName, t: TestContext) {
  const server = await openServer(engine, t)
  const secret = await server.registerApp('follower')

  async function follow(withSecret: string, app = 'follower', lastEventId?: string) {
    const abort = new AbortController()
    t.after(() => abort.abort())
    const headers = {
      ...basicAuthorization(app, withSecret),
      Accept: 'text/event-stream',
      ...(lastEventId && { 'Last-Event-ID': lastEventId }),
    }
    const answer = await fetch(`${server.url}/v1/revocations`, { headers, signal: abort.signal })
    const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader()
    let text = ''
    const readChunk = async () => {
      const { done, value } = await reader.read()
      text += value ?? ''
      return !done
    }
    return {
      status: answer.status,
      leave: () => abort.abort(),
      /** The remaining text, once the stream has ended. */
      async rest() {
        while (await readChunk());
        return text
      },
      async until(part: string) {
        while (!text.includes(part) && (await readChunk()));
        return text
      },
    }
  }

  async function replaceSecret(): Promise<string> {
    server.clock.advance(1)
    return (await server.apps.newSecret('follower')).secret
  }

  return { server, secret, follow, replaceSecret }
}
