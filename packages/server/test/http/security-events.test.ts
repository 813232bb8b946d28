import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { securityEvent } from '../../src/security-events/security-event.ts'
import { securityEventExport } from '../../src/security-events/security-event-object.ts'
import { type EngineName, forEachEngine } from '../support/engines.ts'
import { openServer } from '../support/http.ts'

async function open(engine: EngineName, t: TestContext) {
  const server = await openServer(engine, t)
  const ada = await server.signIn('ada@example.com')
  return { server, ada, token: ada.tokens.accessToken }
}

forEachEngine(engine => {
  test('security events are filtered by type and by key', async t => {
    const { server, token } = await open(engine, t)
    const firstKey = await server.createKey(token)
    await server.createKey(token)
    const list = async (query: string) => {
      const { status, body } = await server.get(`/v1/security-events?${query}`, { token })
      assert.equal(status, 200)
      return body.data.map(({ type }: { type: string }) => type)
    }
    assert.deepEqual(await list('type=api_key_created'), ['api_key_created', 'api_key_created'])
    assert.deepEqual(await list(`key_id=${firstKey.id}`), ['api_key_created'])
    assert.deepEqual(await list(`key_id=${firstKey.id}&type=sign_in`), [])
    for (const [query, field] of [
      ['type=nonsense', 'type'],
      ['type=toString', 'type'],
      ['key_id=x', 'key_id'],
    ] as const) {
      const { status, body } = await server.get(`/v1/security-events?${query}`, { token })
      assert.deepEqual([status, body.errors[0].field], [400, field])
    }
  })

  test('all security events are exported as CSV and as JSON lines, and no cell is a formula', async t => {
    const { server, ada, token } = await open(engine, t)
    const now = server.clock.now()
    await server.storage.transaction(async tx => {
      for (let n = 0; n < 1201; n++)
        await tx.securityEvents.insert(
          securityEvent('sign_in', ada.user.id, now + n, {
            network: '192.0.2.1',
            client: `=HYPERLINK("${n}")`,
          }),
        )
    })
    const csvAnswer = await server.get('/v1/security-events', { token, headers: { Accept: 'text/csv' } })
    assert.equal(csvAnswer.headers.get('content-type'), 'text/csv; charset=utf-8; header=present')
    const lines = csvAnswer.text.trimEnd().split('\r\n')
    assert.equal(lines[0], 'id,at,type,network,client,key_id,session_id')
    assert.equal(lines.length, 1 + 1201 + 2)
    assert.ok(lines[1]?.includes(`"'=HYPERLINK(""1200"")"`), lines[1] ?? '')
    const headers = { Accept: 'application/x-ndjson' }
    const jsonlAnswer = await server.get('/v1/security-events?type=account_created', { token, headers })
    assert.equal(jsonlAnswer.headers.get('content-type'), 'application/x-ndjson')
    assert.deepEqual(
      jsonlAnswer.text
        .trimEnd()
        .split('\n')
        .map(line => JSON.parse(line).type),
      ['account_created'],
    )
  })
})

test('an export of security events breaks off once the reader may no longer read', async () => {
  const event = securityEvent('sign_in', 'user', 1, null)
  const nextPosition = { at: 1, id: event.id }
  const sessionEnded = new Error('the session ended')
  const stream = securityEventExport(
    'jsonl',
    async () => ({ rows: [event], next: nextPosition }),
    () => Promise.reject(sessionEnded),
  )
  const reader = stream.getReader()
  assert.equal((await reader.read()).done, false)
  await assert.rejects(reader.read(), sessionEnded)
})
