import assert from 'node:assert/strict'
import { request } from 'node:http'
import { test } from 'node:test'
import { MAX_JSON_VALUES } from '../../src/http/body.ts'
import { openServer } from '../support/http.ts'

const SEND_PATH = '/auth/send-magic-link'
const VALID_BODY = JSON.stringify({ email: 'ada@example.com' })

const REFUSED_TYPES = [
  'text/plain',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'application/jsonx',
  'application/json x',
  'application/json;',
  'application/json\t;',
  'application/json; charset=utf-7',
  'application/json; charset=utf-16',
  'application/json; charset=utf-8; a=b',
  'application/vnd.api+json',
  'application/json, application/json',
  '',
]

test('a body of any type other than application/json is refused, such as those that browsers send without a preflight', async t => {
  const server = await openServer('sqlite', t)
  for (const type of REFUSED_TYPES) {
    const answer = await server.post(SEND_PATH, VALID_BODY, { headers: { 'Content-Type': type } })
    assert.equal(answer.status, 415, JSON.stringify(type))
    assert.equal(answer.body.code, 'unsupported_media_type')
  }
  for (const type of [
    'application/json',
    'Application/JSON',
    'application/json; charset=utf-8',
    'application/json;charset="UTF-8"',
  ]) {
    assert.equal(
      (await server.post(SEND_PATH, VALID_BODY, { headers: { 'Content-Type': type } })).status,
      200,
      type,
    )
  }
  const mails = await server.mailsTo('ada@example.com', 'sign_in')
  assert.equal(mails.length, 4, 'no refused request sent a mail')
})

test('two Content-Type headers are refused', async t => {
  const server = await openServer('sqlite', t)
  const head = `POST ${SEND_PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Type: application/json\r\n`
  const answer = await server.raw(
    `${head}Content-Length: ${VALID_BODY.length}\r\nConnection: close\r\n\r\n${VALID_BODY}`,
  )
  assert.match(answer, /^HTTP\/1\.1 415 /)
})

test('a compressed body is refused', async t => {
  const server = await openServer('sqlite', t)
  for (const encoding of ['gzip', 'br', 'gzip, gzip', 'x']) {
    const answer = await server.post(SEND_PATH, VALID_BODY, {
      headers: { 'Content-Encoding': encoding, 'Content-Type': 'application/json' },
    })
    assert.equal(answer.status, 415, encoding)
  }
})

test('a body of 16 KiB is accepted and a larger one refused, with Content-Length or chunked', async t => {
  const server = await openServer('sqlite', t)
  const longestBody = `{"email":"ada@example.com","x":"${'a'.repeat(16_384 - 34)}"}`
  assert.equal(Buffer.byteLength(longestBody), 16_384)
  const oversizedBody = longestBody.replace('"x":"', '"x":"a')
  assert.equal((await postInChunks(server.port, longestBody)).status, 200)
  assert.equal((await postInChunks(server.port, oversizedBody)).status, 413)
  assert.equal((await server.post(SEND_PATH, longestBody)).status, 200)
  const answer = await server.post(SEND_PATH, oversizedBody)
  assert.equal(answer.status, 413)
  assert.equal(answer.body.code, 'payload_too_large')
})

test('a body of 5 MB is refused without being read', async t => {
  const server = await openServer('sqlite', t)
  const residentBefore = process.memoryUsage().rss
  const answer = await server.raw(
    `POST ${SEND_PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 5000000\r\n\r\n`,
  )
  assert.match(answer, /^HTTP\/1\.1 413 /)
  assert.ok(process.memoryUsage().rss - residentBefore < 20_000_000)
})

test('a body that is not JSON in UTF-8 is refused with invalid_json', async t => {
  const server = await openServer('sqlite', t)
  const headers = { 'Content-Type': 'application/json' }
  for (const body of [
    '{',
    'x',
    '{"email":}',
    `\ufeff${VALID_BODY}`,
    '{"email":"a@b.test",}',
    "{'email':1}",
    ' ',
  ]) {
    const answer = await server.post(SEND_PATH, body, { headers })
    assert.equal(answer.body.code, 'invalid_json', body)
  }
  const bytes = Buffer.from(`{"email":"\xff@example.com"}`, 'latin1')
  const head = `POST ${SEND_PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\n`
  const answer = await server.raw(
    Buffer.concat([Buffer.from(`${head}Content-Length: ${bytes.length}\r\n\r\n`), bytes]),
  )
  assert.match(answer, /invalid_json/)
})

test('deeply nested and very long JSON is refused with a problem document', async t => {
  const server = await openServer('sqlite', t)
  const nestedLists = `${'['.repeat(8000)}${']'.repeat(8000)}`
  assert.equal((await server.post(SEND_PATH, nestedLists)).status, 400)
  assert.equal((await server.post(SEND_PATH, `{"email":"ada@example.com","x":${nestedLists}}`)).status, 400)
  const { tokens } = await server.signIn('ada@example.com')
  const path = '/v1/agents/019aa2c4-6f00-7c1a-9d55-0a8b6b9d2f11/messages'
  const answer = await server.post(path, `{"data":${nestedLists}}`, { token: tokens.accessToken })
  assert.equal(answer.body.code, 'invalid_request')
})

test('a body with more values or levels than the limits is refused before it is parsed', async t => {
  const server = await openServer('sqlite', t)
  const filler = 'x'.repeat(2000)
  const bodyWithX = (x: string) => `{"email":"ada@example.com","filler":"${filler}\\"[[,,","x":${x}}`
  const list = (length: number) => `[${Array(length).fill('1').join(',')}]`
  // The body, its three fields and the list count as five values.
  for (const [body, status] of [
    [bodyWithX(list(MAX_JSON_VALUES - 5)), 200],
    [bodyWithX(list(MAX_JSON_VALUES)), 400],
    [bodyWithX(`${'['.repeat(64)}${']'.repeat(64)}`), 200],
    [bodyWithX(`${'['.repeat(65)}${']'.repeat(65)}`), 400],
  ] as const)
    assert.equal((await server.post(SEND_PATH, body)).status, status, body.slice(2050, 2120))
  const refusal = await server.post(SEND_PATH, bodyWithX(list(MAX_JSON_VALUES)))
  assert.deepEqual(refusal.body.errors, [
    { field: 'body', message: 'must have at most 64 levels and 256 values' },
  ])
  const { tokens } = await server.signIn('ada@example.com')
  const path = '/v1/agents/019aa2c4-6f00-7c1a-9d55-0a8b6b9d2f11/messages'
  const message = await server.post(path, `{"data":${list(8000)}}`, { token: tokens.accessToken })
  assert.equal(message.body.code, 'not_found', 'a message may hold any number of values')
})

test('of two fields with one name the last is validated and used', async t => {
  const server = await openServer('sqlite', t)
  assert.equal(
    (await server.post(SEND_PATH, '{"email":"first@example.com","email":"last@example.com"}')).status,
    200,
  )
  assert.equal((await server.mailsTo('last@example.com', 'sign_in')).length, 1)
  assert.equal((await server.mailsTo('first@example.com', 'sign_in')).length, 0)
  assert.equal((await server.post(SEND_PATH, '{"Email":"ada@example.com"}')).status, 400)
})

test('__proto__ and constructor in a body or query have no effect', async t => {
  const server = await openServer('sqlite', t)
  const prototypeBody =
    '{"email":"ada@example.com","__proto__":{"app_id":"evil","status":500},"constructor":{"prototype":{"x":1}}}'
  assert.equal((await server.post(SEND_PATH, prototypeBody)).status, 200)
  assert.equal((await server.get('/livez?__proto__=1&constructor=2&__proto__[x]=1')).status, 200)
  assert.equal(Object.hasOwn(Object.prototype, 'app_id'), false)
  assert.deepEqual((await server.get('/livez')).body, { status: 'alive' })
})

test('a mistyped name of a required field is named beside the missing field, where unknown fields are ignored too', async t => {
  const server = await openServer('sqlite', t)
  const { tokens } = await server.signIn('ada@example.com')
  const errorsOf = async (path: string, body: object) =>
    (await server.post(path, body, { token: tokens.accessToken })).body.errors
  const [missing, mistyped, ...others] = await errorsOf(SEND_PATH, { emial: 'ada@example.com', nothing: 1 })
  assert.equal(missing.field, 'email')
  assert.deepEqual(mistyped, { field: 'emial', message: 'is not a known field; did you mean "email"?' })
  assert.deepEqual(others, [])
  const addressErrors = await errorsOf('/v1/me/email', { e_mail: 'ada@example.org' })
  assert.deepEqual(
    addressErrors.map(({ field }: { field: string }) => field),
    ['email', 'e_mail'],
  )
  const optionalFieldErrors = await errorsOf(SEND_PATH, { app_idd: 'shop' })
  assert.deepEqual(
    optionalFieldErrors.map(({ field }: { field: string }) => field),
    ['email'],
    'an unknown field that is near an optional one stays ignored',
  )
})

test('unknown fields are ignored, null counts as omitted, and known fields are strictly typed', async t => {
  const server = await openServer('sqlite', t)
  assert.equal(
    (
      await server.post(SEND_PATH, {
        email: 'ada@example.com',
        app_id: null,
        redirect_to: 'https://evil.test',
      })
    ).status,
    200,
  )
  const [mail] = await server.mailsTo('ada@example.com', 'sign_in')
  assert.doesNotMatch(mail!.link, /evil\.test/)
  for (const email of [1, true, {}, ['ada@example.com'], { toString: 'x' }, null]) {
    const answer = await server.post(SEND_PATH, { email })
    assert.equal(answer.body.code, 'invalid_request')
    assert.equal(answer.body.errors[0].field, 'email')
    assert.match(answer.body.errors[0].message, /for example/)
  }
})

test('NUL and lone surrogates are refused in every text, and lengths are counted in code points', async t => {
  const server = await openServer('sqlite', t)
  const { tokens } = await server.signIn('ada@example.com')
  const rename = (name: string) =>
    server.call('PATCH', '/v1/me', { token: tokens.accessToken, body: { name } })
  assert.equal((await rename('a\0b')).status, 400)
  assert.equal(
    (await server.call('PATCH', '/v1/me', { token: tokens.accessToken, body: '{"name":"\\ud800"}' })).status,
    400,
  )
  assert.equal((await rename('a\r\nb')).status, 400)
  assert.equal((await rename('😀'.repeat(100))).body.user.name, '😀'.repeat(100))
  assert.equal((await rename('😀'.repeat(101))).status, 400)
  assert.equal((await rename('<script>\u202e')).body.user.name, '<script>\u202e')
})

function postInChunks(port: number, body: string): Promise<{ status: number }> {
  return new Promise((resolve, reject) => {
    const outgoing = request({
      port,
      path: SEND_PATH,
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
    })
    outgoing.on('response', incoming => {
      incoming.resume()
      resolve({ status: incoming.statusCode! })
    })
    outgoing.on('error', reject)
    for (let at = 0; at < body.length; at += 4096) outgoing.write(body.slice(at, at + 4096))
    outgoing.end()
  })
}
