import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MAX_STREAMS_PER_OWNER } from '../../src/web/streams.ts'
import { postgresMissing } from '../support/engines.ts'
import { freshPostgres } from '../support/nodes.ts'
import { signedInClient } from '../support/page-client.ts'
import { startProxy } from '../support/proxy.ts'
import { startWeb } from '../support/web.ts'

test('a page refuses other methods with 405 and Allow, for browsers and programs', async t => {
  const web = await startWeb(t)
  const id = '0190a5b8-7c3e-7abc-8def-0123456789ab'
  const READ_ONLY = 'GET, HEAD, OPTIONS'
  const READ_AND_POST = 'GET, HEAD, POST, OPTIONS'
  for (const [method, path, allow] of [
    ['PUT', '/sign-in', READ_AND_POST],
    ['DELETE', '/keys', READ_AND_POST],
    ['PATCH', '/verify', READ_AND_POST],
    ['POST', `/keys/${id}`, READ_ONLY],
    ['POST', '/inbox', READ_ONLY],
    ['POST', '/assets/style.css', READ_ONLY],
    ['GET', '/sign-out', 'POST, OPTIONS'],
    ['GET', `/keys/${id}/rotate`, 'POST, OPTIONS'],
    ['HEAD', '/account/charging/hub/grant', 'POST, OPTIONS'],
  ] as const) {
    const browserResponse = await fetch(web.url + path, { method, headers: { accept: 'text/html' } })
    assert.deepEqual(
      [browserResponse.status, browserResponse.headers.get('allow')],
      [405, allow],
      `${method} ${path}`,
    )
    assert.match(browserResponse.headers.get('content-type')!, /^text\/html/)
    const programResponse = await fetch(web.url + path, { method, headers: { accept: 'application/json' } })
    assert.deepEqual(
      [programResponse.status, programResponse.headers.get('allow')],
      [405, allow],
      `${method} ${path}`,
    )
    assert.equal(programResponse.headers.get('content-type'), 'application/problem+json')
    if (method !== 'HEAD') assert.equal((await programResponse.json()).code, 'method_not_allowed')
    const optionsResponse = await fetch(web.url + path, { method: 'OPTIONS' })
    assert.deepEqual([optionsResponse.status, optionsResponse.headers.get('allow')], [204, allow])
  }
  for (const method of ['PUT', 'OPTIONS'])
    assert.equal((await fetch(`${web.url}/nothing`, { method })).status, 404)
  const remoteInbox = await fetch(`${web.url}/inbox`, {
    method: 'POST',
    headers: { 'x-forwarded-for': '192.0.2.1' },
  })
  assert.equal(remoteInbox.status, 404)
})

/** The headers without those that differ per response or connection. */
function stableHeaders({ headers }: Response): Record<string, string> {
  const varyingHeaders = [
    'x-request-id',
    'date',
    'connection',
    'keep-alive',
    'content-length',
    'transfer-encoding',
  ]
  return Object.fromEntries([...headers].filter(([name]) => !varyingHeaders.includes(name)))
}

test('HEAD of a page has the status and headers of GET, and opens no stream', async t => {
  const web = await startWeb(t)
  const client = await signedInClient(web)
  const cookie = [...client.jar].map(([name, value]) => `${name}=${value}`).join('; ')
  const request = (method: string, path: string) =>
    fetch(web.url + path, { method, redirect: 'manual', headers: { accept: 'text/html', cookie } })
  for (const path of ['/keys', '/sign-in', '/inbox', '/nothing', '/assets/script.js']) {
    const [head, get] = await Promise.all([request('HEAD', path), request('GET', path)])
    assert.deepEqual([head.status, stableHeaders(head)], [get.status, stableHeaders(get)], path)
    assert.equal(await head.text(), '')
  }
  for (let asked = 0; asked < 2 * MAX_STREAMS_PER_OWNER; asked++) {
    const headResponse = await request('HEAD', '/agents/events')
    assert.deepEqual(
      [headResponse.status, headResponse.headers.get('content-type')],
      [200, 'text/event-stream'],
    )
  }
})

test('errors are a problem document for programs and a page for browsers, also while the database is unavailable', {
  skip: postgresMissing(),
}, async t => {
  const url = await freshPostgres(t)
  const proxy = await startProxy(url, t)
  const web = await startWeb(t, {
    KEYWAY_DATABASE_URL: proxy.through(url),
    KEYWAY_SECRET: Buffer.alloc(32, 1).toString('base64'),
  })
  proxy.cut()
  const programResponse = await fetch(`${web.url}/inbox`, { headers: { accept: 'application/json' } })
  assert.deepEqual(
    [programResponse.status, programResponse.headers.get('content-type')],
    [503, 'application/problem+json'],
  )
  assert.ok(Number(programResponse.headers.get('retry-after')) > 0)
  assert.equal((await programResponse.json()).code, 'unavailable')
  const browserResponse = await fetch(`${web.url}/inbox`, { headers: { accept: 'text/html' } })
  assert.deepEqual(
    [browserResponse.status, browserResponse.headers.get('content-type')],
    [503, 'text/html; charset=UTF-8'],
  )
})
