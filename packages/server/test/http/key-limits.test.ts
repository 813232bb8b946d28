import assert from 'node:assert/strict'
import { test } from 'node:test'
import { forEachEngine } from '../support/engines.ts'
import { openServer } from '../support/http.ts'

type Server = Awaited<ReturnType<typeof openServer>>

const LIMITS = {
  requests: [
    { limit: 10, per: 'second' },
    { limit: 100, per: 'minute' },
  ],
  spend: [{ amount: '5.00', per: 'day' }],
  quota: { remaining: 1000, refill: { amount: 2000, every: 'month' } },
}

async function openKey(server: Server, body: object = {}) {
  const token = (await server.signIn('ada@example.com')).tokens.accessToken
  const creationAnswer = await server.post('/v1/api-keys', body, { token })
  assert.equal(creationAnswer.status, 201, JSON.stringify(creationAnswer.body))
  const path = `/v1/api-keys/${creationAnswer.body.id}`
  const patch = (limits: unknown, credential: string = token) =>
    server.call('PATCH', path, { token: credential, body: { limits } })
  return { token, path, patch, ...creationAnswer.body }
}

forEachEngine(engine => {
  test('every response with a key has its limits as they were set, and PATCH replaces and clears them', async t => {
    const server = await openServer(engine, t)
    const key = await openKey(server, { limits: LIMITS })
    assert.deepEqual(key.limits, LIMITS)
    assert.deepEqual(key.operator_limits, {})
    const { token, path } = key
    assert.deepEqual((await server.get(path, { token })).body.limits, LIMITS)
    assert.deepEqual((await server.get('/v1/api-keys', { token })).body.data[0].limits, LIMITS)
    const spend = [{ amount: '0.25', per: 'total' }]
    assert.deepEqual((await key.patch({ spend })).body.limits, { spend })
    assert.deepEqual((await server.call('PATCH', path, { token, body: { name: 'x' } })).body.limits, {
      spend,
    })
    assert.deepEqual((await key.patch(null)).body.limits, {})
    assert.deepEqual((await key.patch(LIMITS)).body.limits, LIMITS)
    assert.deepEqual((await key.patch({})).body.limits, {})
    assert.deepEqual((await server.get(path, { token })).body.limits, {})
  })

  test('a quota without remaining starts with its refill, and is unchanged when other limits change', async t => {
    const server = await openServer(engine, t)
    const refill = { amount: 50, every: 'day' }
    const key = await openKey(server, { limits: { quota: { refill } } })
    assert.deepEqual(key.limits, { quota: { remaining: 50, refill } })
    await key.patch({ quota: { remaining: 7, refill } })
    const requests = [{ limit: 5, per: 'hour' }]
    const changeAnswer = await key.patch({ requests, quota: { refill } })
    assert.deepEqual(changeAnswer.body.limits, { requests, quota: { remaining: 7, refill } })
    const hourlyRefill = { amount: 9, every: 'hour' }
    assert.deepEqual((await key.patch({ quota: { refill: hourlyRefill } })).body.limits, {
      quota: { remaining: 7, refill: hourlyRefill },
    })
  })

  test('a quota keeps the calls that a node has leased from it when other limits change', async t => {
    const server = await openServer(engine, t)
    const refill = { amount: 1000, every: 'month' }
    const { id, user_id, patch } = await openKey(server, { limits: { quota: { refill } } })
    await server.limiter.consume(await server.apiKeys.get(user_id, id), 1)
    const requests = [{ limit: 5, per: 'hour' }]
    const changeAnswer = await patch({ requests, quota: { refill } })
    assert.deepEqual(changeAnswer.body.limits, { requests, quota: { remaining: 999, refill } })
  })

  test('a quota is refilled at the start of the next period in UTC', async t => {
    const server = await openServer(engine, t)
    const key = await openKey(server, {
      limits: { quota: { remaining: 1, refill: { amount: 9, every: 'hour' } } },
    })
    const remaining = async () =>
      (await server.apiKeys.quotasLeft([await server.apiKeys.get(key.user_id, key.id)])).values().next().value
    const hour = 3_600_000
    const now = server.clock.now()
    server.clock.advance(hour - (now % hour) - 1)
    assert.equal(await remaining(), 1)
    server.clock.advance(1)
    assert.equal(await remaining(), 9)
  })

  test('a key may only tighten limits and networks; a signed-in person may loosen them', async t => {
    const server = await openServer(engine, t)
    const key = await openKey(server, { limits: LIMITS, allowed_networks: ['127.0.0.0/8'] })
    const { requests, spend, quota } = LIMITS
    for (const looser of [
      null,
      {},
      { requests, spend },
      { requests: requests.slice(1), spend, quota },
      { requests: [{ limit: 11, per: 'second' }, requests[1]], spend, quota },
      { requests: [{ limit: 10, per: 'minute' }], spend, quota },
      { requests, spend: [{ amount: '5.01', per: 'day' }], quota },
      { requests, spend: [{ amount: '1.00', per: 'month' }], quota },
      { requests, spend, quota: { ...quota, remaining: 1001 } },
      { requests, spend, quota: { refill: { amount: 2001, every: 'month' } } },
      { requests, spend, quota: { refill: { amount: 1, every: 'day' } } },
    ]) {
      // Makes room in the windows of the key's request limits, in which these calls count too.
      server.clock.advance(10_000)
      const refusal = await key.patch(looser, key.key)
      assert.equal(refusal.body.code, 'session_required', JSON.stringify(looser))
      assert.match(refusal.body.detail, /may only tighten limits: .* Sign in to allow more\.$/)
    }
    const wideningRefusal = await server.call('PATCH', key.path, {
      token: key.key,
      body: { allowed_networks: [] },
    })
    assert.equal(wideningRefusal.body.code, 'session_required')
    assert.match(wideningRefusal.body.detail, /may only narrow allowed_networks: .* Sign in to allow more\.$/)
    assert.deepEqual((await server.get(key.path, { token: key.token })).body.limits, LIMITS)
    const tighterLimits = {
      requests: [{ limit: 9, per: 'second' }, requests[1], { limit: 1000, per: 'day' }],
      spend: [...spend, { amount: '9.00', per: 'total' }],
      quota: { remaining: 999 },
    }
    const tighteningAnswer = await key.patch(tighterLimits, key.key)
    assert.deepEqual(tighteningAnswer.body.limits, tighterLimits)
    assert.equal((await key.patch(null)).status, 200)
  })

  test('a rotation passes on the limits of owner and operator, and both keys share them', async t => {
    const server = await openServer(engine, t)
    const key = await openKey(server, { limits: LIMITS })
    const operatorLimits = {
      requests: [{ limit: 1, per: 'day' as const }],
      spend: [],
      quota: { remaining: 3, refill: null },
    }
    await server.apiKeys.setOperatorLimits(key.id, operatorLimits)
    const rotationAnswer = await server.post(`${key.path}/rotate`, {}, { token: key.token })
    assert.deepEqual(rotationAnswer.body.limits, LIMITS)
    assert.deepEqual(rotationAnswer.body.operator_limits, {
      requests: operatorLimits.requests,
      quota: { remaining: 3 },
    })
    const secondRotation = await server.post(
      `/v1/api-keys/${rotationAnswer.body.id}/rotate`,
      {},
      { token: key.token },
    )
    const keys = await server.apiKeys.findMany([key.id, rotationAnswer.body.id, secondRotation.body.id])
    assert.deepEqual(new Set([...keys.values()].map(({ lineageId }) => lineageId)), new Set([key.id]))
    const quotas = new Set([...keys.values()].map(({ limits }) => limits.quota!.id))
    assert.equal(quotas.size, 1)
  })

  test('the owner sees the limits of the operator and cannot change them', async t => {
    const server = await openServer(engine, t)
    const key = await openKey(server)
    const requests = [{ limit: 1, per: 'day' as const }]
    await server.apiKeys.setOperatorLimits(key.id, { requests, spend: [], quota: null })
    const patchAnswer = await key.patch(null)
    assert.deepEqual(patchAnswer.body.operator_limits, { requests })
    const body = { operator_limits: {} }
    const operatorLimitsAnswer = await server.call('PATCH', key.path, { token: key.token, body })
    assert.equal(operatorLimitsAnswer.status, 400)
    assert.equal((await server.post('/v1/api-keys', body, { token: key.token })).status, 400)
    const keyWithoutLimits = await server.apiKeys.setOperatorLimits(key.id, {
      requests: [],
      spend: [],
      quota: null,
    })
    assert.deepEqual(keyWithoutLimits.operatorLimits, { requests: [], spend: [], quota: null })
  })

  test('of two concurrent changes one wins entirely, and one quota remains', async t => {
    const server = await openServer(engine, t)
    const key = await openKey(server, { limits: { quota: { remaining: 100 } } })
    await Promise.all(Array.from({ length: 20 }, (_, number) => key.patch({ quota: { remaining: number } })))
    const { limits } = await server.apiKeys.get(key.user_id, key.id)
    const remaining = await server.store.quotas.remaining([limits.quota!.id], server.clock.now())
    assert.equal(remaining.get(limits.quota!.id), limits.quota!.granted)
  })
})

test('an invalid limit is refused with its field and an example, and a mistyped name with the nearest one', async t => {
  const server = await openServer('sqlite', t)
  const { patch } = await openKey(server)
  const quota = { remaining: 1 }
  for (const [limits, field, said] of [
    [[], 'limits', /must be an object/],
    [{ request: [] }, 'limits', /"request" is not a known field; did you mean "requests"\?/],
    [{ requests: {} }, 'limits.requests', /must be a list/],
    [{ requests: [{ limit: 0, per: 'day' }] }, 'limits.requests.0.limit', /from 1 to 1000000000/],
    [{ requests: [{ limit: 1e9 + 1, per: 'day' }] }, 'limits.requests.0.limit', /from 1/],
    [{ requests: [{ limit: 1.5, per: 'day' }] }, 'limits.requests.0.limit', /whole number/],
    [{ requests: [{ limit: 1, per: 'month' }] }, 'limits.requests.0.per', /one of second, minute, hour, day/],
    [{ requests: [{ limit: 1, per: 'day', burst: 2 }] }, 'limits.requests.0', /"burst" is not a known field/],
    [
      {
        requests: [
          { limit: 1, per: 'day' },
          { limit: 2, per: 'day' },
        ],
      },
      'limits.requests',
      /at most one entry per/,
    ],
    [
      { requests: Array.from({ length: 5 }, () => ({ limit: 1, per: 'day' })) },
      'limits.requests',
      /at most one/,
    ],
    [{ spend: [{ amount: '0', per: 'day' }] }, 'limits.spend.0.amount', /positive decimal/],
    [{ spend: [{ amount: 5, per: 'day' }] }, 'limits.spend.0.amount', /positive decimal/],
    [{ spend: [{ amount: '1000000.01', per: 'day' }] }, 'limits.spend.0.amount', /at most 1000000/],
    [{ spend: [{ amount: '1', per: 'hour' }] }, 'limits.spend.0.per', /one of day, month, total/],
    [{ quota: {} }, 'limits.quota', /remaining, refill or both/],
    [{ quota: { remaining: -1 } }, 'limits.quota.remaining', /from 0/],
    [{ quota: { remaining: 1e12 + 1 } }, 'limits.quota.remaining', /from 0/],
    [{ quota: { ...quota, refill: { amount: 0, every: 'day' } } }, 'limits.quota.refill.amount', /from 1/],
    [
      { quota: { ...quota, refill: { amount: 1, every: 'second' } } },
      'limits.quota.refill.every',
      /hour, day/,
    ],
  ] as const) {
    const { status, body } = await patch(limits)
    assert.equal(status, 400, JSON.stringify(limits))
    assert.equal(body.errors[0].field, field)
    assert.match(body.errors[0].message, said)
  }
})

test('request limits and spend are returned in the order of their windows', async t => {
  const server = await openServer('sqlite', t)
  const { limits } = await openKey(server, {
    limits: {
      requests: [
        { limit: 9, per: 'day' },
        { limit: 1, per: 'second' },
      ],
    },
  })
  assert.deepEqual(
    limits.requests.map(({ per }: { per: string }) => per),
    ['second', 'day'],
  )
})
