import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BY_COMMAND_LINE } from '../../src/audit/audit.ts'
import { AUDIT_CSV_HEADER } from '../../src/audit/audit-object.ts'
import { MINUTE } from '../../src/clock.ts'
import { parseEmailAddress } from '../../src/users/email-address.ts'
import { aMessage } from '../contract/fixtures.ts'
import { openAdministration } from '../support/administrators.ts'
import { createJourney } from '../support/journey.ts'
import { signedInClient } from '../support/page-client.ts'
import { until } from '../support/patience.ts'

test('a key of anybody has a page with its use, is limited by the operator, and is revoked with a reason', async t => {
  const { web, services, signUp, post, auditEvents, createKey } = await openAdministration(t)
  const [admin, ada] = [await signUp('admin', 'admin'), await signUp('ada', 'user')]
  const { apiKey, key } = await createKey(ada.id)
  await createJourney(web.url).exchange(key)
  await services.meter.flush()
  const path = `/admin/keys/${apiKey.id}`
  const text = await (await admin.client.get(path)).text()
  assert.ok(text.includes(`href="/admin/users/${ada.id}">ada@example.com</a>`))
  assert.match(text, /aria-label="1 use and 0 refusals in 30 days\."/)
  assert.equal((await ada.client.get(path)).status, 404)
  assert.equal((await admin.client.get('/admin/keys/nothing')).status, 404)
  const send = (act: string, fields: Record<string, string>) =>
    post(admin.client, path, `${path}/${act}`, fields)
  assert.equal((await send('limit', { requests: '500/day 10/minute' })).status, 303)
  const limits = async () => (await services.apiKeys.get(ada.id, apiKey.id)).operatorLimits.requests
  assert.deepEqual(await limits(), [
    { limit: 10, per: 'minute' },
    { limit: 500, per: 'day' },
  ])
  for (const requests of ['much', '1/day 2/day', '0/day'])
    assert.equal((await send('limit', { requests })).status, 400, requests)
  assert.match(await (await admin.client.get(path)).text(), /value="10\/minute 500\/day"/)
  assert.equal((await send('limit', { requests: '' })).status, 303)
  assert.deepEqual(await limits(), [])
  assert.equal((await send('revoke', { reason: 'leaked' })).status, 303)
  assert.notEqual((await services.apiKeys.get(ada.id, apiKey.id)).revokedAt, null)
  assert.equal((await auditEvents())[0]!.reason?.text, 'leaked')
  assert.ok(!(await (await admin.client.get(path)).text()).includes('/revoke"'))
})

test('keys of everybody are found by their beginning or external id, and the page says how many it revoked', async t => {
  const { signUp, post, createKey } = await openAdministration(t)
  const [admin, ada] = [await signUp('admin', 'admin'), await signUp('ada', 'user')]
  const firstKey = await createKey(ada.id, { name: 'first robot', externalId: 'customer-1' })
  const secondKey = await createKey(ada.id, { name: 'second robot' })
  const pageOf = async (query: string) => (await admin.client.get(`/admin/keys?${query}`)).text()
  for (const query of [`query=${firstKey.key.slice(0, 12)}`, 'query=customer-1']) {
    const text = await pageOf(query)
    assert.ok(text.includes('first robot') && !text.includes('second robot'), query)
  }
  assert.match(await pageOf('query=customer-2'), /No keys/)
  assert.match(await pageOf('filter=unused'), /aria-current="true">90 days</)
  assert.match(await pageOf('filter=unused&days=30'), /aria-current="true">30 days</)
  assert.match(await pageOf(''), /<form method="get" action="\/admin\/keys\/revoke"/)
  const confirmation = await admin.client.get(
    `/admin/keys/revoke?id=${firstKey.apiKey.id}&id=${secondKey.apiKey.id}`,
  )
  const question = await confirmation.text()
  assert.match(question, /<h1>Revoke 2 keys\?<\/h1>/)
  assert.ok(question.includes('first robot') && question.includes(ada.email))
  assert.equal((await ada.client.get(`/admin/keys/revoke?id=${firstKey.apiKey.id}`)).status, 404)
  for (const withoutKeys of ['', '?id=x', `?id=${admin.id}`])
    assert.equal((await admin.client.get(`/admin/keys/revoke${withoutKeys}`)).status, 400, withoutKeys)
  const form_token = await admin.client.formToken(`/admin/keys/revoke?id=${firstKey.apiKey.id}`)
  const fields = new URLSearchParams([
    ['form_token', form_token],
    ['reason', 'leaked'],
    ['id', firstKey.apiKey.id],
    ['id', secondKey.apiKey.id],
  ])
  const revocation = await admin.client.post('/admin/keys/revoke', fields as never)
  assert.equal(revocation.headers.get('location'), '/admin/keys?revoked=2')
  assert.match(await pageOf('revoked=2'), /role="status">2 keys are revoked\./)
  assert.doesNotMatch(await pageOf('revoked=<b>'), /role="status"/)
  const secondRevocation = await post(admin.client, '/admin/keys', '/admin/keys/revoke', {
    id: firstKey.apiKey.id,
  })
  assert.equal(secondRevocation.status, 400, 'it is no active key any more')
})

test('all keys of a person are revoked at once, the name is set, and what apps may do is listed', async t => {
  const { services, signUp, post, createKey, auditEvents } = await openAdministration(t)
  const [admin, ada] = [await signUp('admin', 'admin'), await signUp('ada', 'user')]
  for (let made = 0; made < 3; made++) await createKey(ada.id)
  const path = `/admin/users/${ada.id}`
  const send = (act: string, fields: Record<string, string> = {}) =>
    post(admin.client, path, `${path}/${act}`, fields)
  const revokePage = await (await admin.client.get(`${path}/revoke-keys`)).text()
  assert.match(revokePage, /<h1>Revoke 3 keys\?<\/h1>/)
  assert.match(revokePage, /for the audit<\/label><input [^>]* required>/)
  assert.match(await (await admin.client.get(path)).text(), /class="button danger" href="[^"]*\/revoke-keys"/)
  assert.equal((await ada.client.get(`${path}/revoke-keys`)).status, 404)
  assert.equal((await send('revoke-keys', { reason: ' ' })).status, 400)
  assert.equal((await send('revoke-keys', { reason: 'left' })).status, 303)
  const activeKeys = await services.apiKeys.list(ada.id, 'active', { limit: 10, after: null })
  assert.equal(activeKeys.rows.length, 0)
  assert.equal((await auditEvents()).filter(({ type }) => type === 'api_key.revoked').length, 3)
  assert.doesNotMatch(await (await admin.client.get(path)).text(), /Revoke all keys/)
  const emptyResponse = await admin.client.get(`${path}/revoke-keys`)
  assert.equal(emptyResponse.headers.get('location'), path)
  assert.equal((await send('rename', { name: '<b>Ada</b>' })).status, 303)
  assert.equal((await send('rename', { name: 'a\u0007' })).status, 400)
  const text = await (await admin.client.get(path)).text()
  assert.ok(text.includes('&lt;b&gt;Ada') && !text.includes('<b>Ada'))
  assert.ok(text.includes('Apps with access') && text.includes('Usage in the last 30 days'))
})

test('a mail that was not sent can be sent again from the list as long as its link is valid', async t => {
  const { services, store, signUp } = await openAdministration(t)
  const admin = await signUp('admin', 'admin')
  const now = services.clock.now()
  const expired = { kind: 'invitation', state: 'expired', settledAt: now } as const
  const mailWithExpiredLink = aMessage({ ...expired, sendBefore: now - 1 })
  const mailWithValidLink = aMessage({ ...expired, sendBefore: now + MINUTE })
  for (const mail of [mailWithExpiredLink, mailWithValidLink]) await store.outbox.insert(mail)
  const page = await (await admin.client.get('/admin/mails?state=expired')).text()
  assert.ok(page.includes(`name="id" value="${mailWithValidLink.id}"`))
  assert.ok(!page.includes(mailWithExpiredLink.id))
})

test('a suppressed address is shown with the mails of the person, and allowed again from there', async t => {
  const { services, store, signUp, post } = await openAdministration(t)
  const [admin, ada] = [await signUp('admin', 'admin'), await signUp('ada', 'user')]
  const address = parseEmailAddress(ada.email)!
  await services.suppressions.record({ addresses: [ada.email], reason: 'bounce' }, 'resend')
  const backPath = `/admin/users/${ada.id}`
  const shownPage = await (await admin.client.get(`${backPath}?show=mails`)).text()
  assert.match(shownPage, /suppressed<\/span><p>It bounced · reported by resend/)
  const liftAnswer = await post(admin.client, backPath, '/admin/mails/lift', {
    address,
    back: backPath,
  })
  assert.equal(liftAnswer.headers.get('location'), `${backPath}?done=mail_allowed`)
  assert.equal(await store.suppressions.find(address, services.clock.now()), null)
  const responseToOtherSite = await post(admin.client, backPath, '/admin/mails/lift', {
    address,
    back: '//evil.example',
  })
  assert.equal(responseToOtherSite.headers.get('location'), '/admin?done=mail_allowed')
})

test('the audit is filtered by person, act and day, and exported whole as CSV and JSON lines', async t => {
  const { services, signUp } = await openAdministration(t)
  const today = () => new Date(services.clock.now()).toISOString().slice(0, 10)
  const firstDay = today()
  const [admin, ada] = [await signUp('admin', 'admin'), await signUp('ada', 'user')]
  await services.users.suspend(ada.id, { ...BY_COMMAND_LINE, reason: '＝SUM(1)' })
  await services.users.activate(ada.id, BY_COMMAND_LINE)
  const namesOf = async (query: string) => {
    const text = await (await admin.client.get(`/admin/audit?${query}`)).text()
    return [...text.matchAll(/<li class="item"><div class="what"><span class="name">([^<]+)/g)].map(
      ([, name]) => name,
    )
  }
  assert.deepEqual(await namesOf(`subject=${ada.id}`), ['Suspension lifted', 'Account suspended'])
  assert.deepEqual(await namesOf(`subject=${ada.id}&type=user.suspended`), ['Account suspended'])
  assert.deepEqual(await namesOf(`actor=${ada.id}`), [])
  assert.deepEqual(await namesOf(`subject=${ada.email}`), ['Suspension lifted', 'Account suspended'])
  for (const nobody of ['actor=ada@example.com', 'subject=nobody@example.com', 'subject=@', 'actor=x'])
    assert.deepEqual(await namesOf(nobody), [], nobody)
  assert.equal((await namesOf(`from=${firstDay}&to=${today()}`)).length, 3)
  assert.equal((await namesOf('to=2020-01-01')).length, 0)
  assert.equal((await namesOf('from=2020-99-99&type=constructor&subject=%00')).length, 3, 'ignored')
  const csv = await admin.client.get(`/admin/audit/export.csv?subject=${ada.id}`)
  assert.match(csv.headers.get('content-disposition')!, /filename="audit-export\.csv"/)
  const lines = (await csv.text()).split('\r\n')
  assert.equal(`${lines[0]}\r\n`, AUDIT_CSV_HEADER)
  assert.ok(lines.length === 4 && lines[1]!.includes(`"'＝SUM(1)"`))
  const jsonLines = await (await admin.client.get('/admin/audit/export.jsonl')).text()
  const sequences = jsonLines
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line).sequence)
  assert.deepEqual(sequences, [1, 2, 3])
  assert.equal((await admin.client.get('/admin/audit/export.exe')).status, 404)
  const user = await signUp('user', 'user')
  assert.equal((await user.client.get('/admin/audit/export.csv')).status, 404)
})

test('people are shown by their addresses in lists and in the audit, a deleted one by no address, and the audit has all ids', async t => {
  const { web, services, store, signUp, createKey } = await openAdministration(t)
  const [admin, ada, gone] = [
    await signUp('admin', 'admin'),
    await signUp('ada', 'user'),
    await signUp('gone', 'user'),
  ]
  const textOf = async (path: string) => (await admin.client.get(path)).text()
  const link = ({ id }: { id: string }, label: string) =>
    `<a href="/admin/users/${id}" title="${id}">${label}</a>`
  const { apiKey, key } = await createKey(ada.id)
  await createKey(gone.id)
  const journey = createJourney(web.url)
  const socket = await journey.connect(await journey.exchange(key))
  t.after(() => socket.terminate())
  await until(
    'the agent is listed',
    async () =>
      (await (await admin.client.get('/admin/agents')).text()).includes(link(ada, ada.email)) || undefined,
  )
  const session = (await services.sessions.list(admin.id, { limit: 1, after: null })).rows[0]!
  const actor = { type: 'user' as const, id: admin.id, key_id: null, session_id: session.id }
  const by = { actor, caller: null, requestId: 'request-1', reason: 'asked <for> it' }
  await services.apiKeys.revokeById(apiKey.id, by)
  await services.users.delete(gone.id, by)
  for (const path of ['/admin', '/admin/audit']) {
    const text = await textOf(path)
    assert.ok(text.includes(`by ${link(admin, admin.email)}`), path)
    assert.ok(text.includes(link(ada, ada.email)) && text.includes(link(gone, 'Deleted account')), path)
    assert.ok(!text.includes(gone.email), path)
    assert.ok(
      text.includes(`<a href="/admin/keys/${apiKey.id}">robot</a>`) && text.includes('asked &lt;for&gt; it'),
    )
    for (const id of [admin.id, session.id, apiKey.id, 'request-1'])
      assert.ok(text.includes(`<dd><code>${id}</code></dd>`), `${path} ${id}`)
  }
  const keys = await textOf('/admin/keys')
  assert.ok(keys.includes(link(ada, ada.email)) && keys.includes(link(gone, 'Deleted account')))

  const userQueries = t.mock.method(store.users, 'findMany')
  await textOf('/admin/keys')
  assert.equal(userQueries.mock.callCount(), 1, 'one query for all rows')
})

test('lists say which rows of how many they show, and lead to the next and the first page with the filters', async t => {
  const { signUp, services } = await openAdministration(t)
  const admin = await signUp('admin', 'admin')
  const people = Array.from({ length: 44 }, (_, at) => parseEmailAddress(`p${at}@example.com`)!)
  await services.users.importUsers(
    people.map(email => ({ email, name: null, externalId: null })),
    BY_COMMAND_LINE,
  )
  const pageOf = async (path: string) => {
    const text = await (await admin.client.get(path)).text()
    const [, foot = ''] = /class="card-foot list-foot">(.*?)<\/div>/s.exec(text) ?? []
    const nextPath = /<a href="([^"]+)">Next page/.exec(foot)?.[1]?.replaceAll('&amp;', '&')
    return { range: /<span class="quiet">([^<]*)/.exec(foot)?.[1], next: nextPath, foot }
  }
  const firstPage = await pageOf('/admin/users')
  assert.equal(firstPage.range, '1–40 of 45')
  assert.doesNotMatch(firstPage.foot, /First page/)
  const secondPage = await pageOf(firstPage.next!)
  assert.deepEqual([secondPage.range, secondPage.next], ['41–45 of 45', undefined])
  assert.match(secondPage.foot, /<a href="\/admin\/users">First page/)
  const searchPage = await pageOf('/admin/users?query=p')
  assert.equal(searchPage.range, '1–40', 'how many are found is not counted')
  assert.match(searchPage.next!, /query=p&/)
  const lastPage = await pageOf(searchPage.next!)
  assert.equal(lastPage.range, '41–44 of 44')
  assert.match(lastPage.foot, /<a href="\/admin\/users\?query=p">First page/)
  assert.equal((await pageOf('/admin/users?start=<b>')).range, '1–40 of 45')
  assert.equal((await pageOf('/admin/users?query=nobody')).range, undefined)
  assert.match((await pageOf('/admin/audit')).range!, /^1–\d+ of \d+$/)
})

test('the page of a person shows first what support needs, ends one session, and has harmful acts at its end', async t => {
  const { web, services, store, signUp, post, auditEvents, createKey } = await openAdministration(t)
  const [admin, ada] = [await signUp('admin', 'admin'), await signUp('ada', 'user')]
  const { apiKey } = await createKey(ada.id)
  await signedInClient(web, ada.email)
  const path = `/admin/users/${ada.id}`
  const textOf = async (query = '') => (await admin.client.get(path + query)).text()
  const send = (act: string, fields: Record<string, string> = {}) =>
    post(admin.client, path, `${path}/${act}`, fields)
  const text = await textOf('?show=ledger')
  assert.match(text, /<p class="back"><a href="\/admin\/users">People<\/a><\/p>/)
  assert.ok(text.includes(`<code id="person-id">${ada.id}</code>`))
  assert.match(text, /<dt>Balance<\/dt><dd>\$2\.00<\/dd>/)
  assert.match(text, /<bdi>Trial credit<\/bdi>.*?<td class="amount">\+\$2\.00<\/td>/s)
  assert.match(text, new RegExp(`Key created <span class="about"><a href="/admin/keys/${apiKey.id}"`))
  const headings = [...text.matchAll(/<h[23]>([^<]+)/g)].map(([, heading]) => heading)
  assert.deepEqual(headings, [
    ...['Ledger', 'Sessions', 'Keys', 'Security events', 'Usage in the last 30 days', 'Apps with access'],
    ...['Credit and name', 'Add credit', 'Set the name'],
    ...['Danger zone', 'Set the role', 'Revoke all keys', 'Suspend the account', 'Delete the account'],
  ])
  assert.match(await textOf('?show=mails'), /<p>Welcome · one attempt/)

  const sessions = async () => (await services.sessions.list(ada.id, { limit: 9, after: null })).rows
  const [firstKey, other] = await sessions()
  const endResponse = await send('end-session', { session: firstKey!.id })
  assert.equal(endResponse.headers.get('location'), `${path}?done=session_ended`)
  assert.match(await textOf('?done=session_ended'), /role="status">The session was ended\./)
  assert.deepEqual(
    (await sessions()).map(({ id }) => id),
    [other!.id],
  )
  assert.deepEqual((await auditEvents())[0]!.after, { session_id: firstKey!.id })
  const sessionOfAdmin = (await services.sessions.list(admin.id, { limit: 1, after: null })).rows[0]!.id
  for (const session of [sessionOfAdmin, 'x'])
    assert.equal((await send('end-session', { session })).status, 404)

  await send('suspend', { reason: 'spam' })
  assert.match(await textOf(), /This account is suspended.*Lift the suspension.*its keys are refused/s)
  await send('delete', { confirm: ada.email, reason: 'asked for' })
  const deletedPage = await textOf()
  assert.match(deletedPage, /name and address are erased/)
  assert.doesNotMatch(deletedPage, /method="post" action="\/admin|show=mails/)
  assert.equal((await store.users.find(ada.id))!.email, null)
})

test('the page of nodes has the findings, problems first, on request all that doctor checks, and rotates signing keys', async t => {
  const { services, signUp, post, auditEvents } = await openAdministration(t)
  const admin = await signUp('admin', 'admin')
  const support = await signUp('support', 'support')
  const findingsOf = async (query: string, headers = {}) => {
    const text = await (await support.client.get(`/admin/nodes${query}`, headers)).text()
    return [
      ...text.matchAll(
        /<span class="tag (\w+)">\w+<\/span><div class="what"><span class="name">([^<]+)<\/span><p>([^<]*)/g,
      ),
    ].map(([, kind, check, detail]) => ({ kind, check, detail: detail! }))
  }
  const quickFindings = await findingsOf('')
  assert.deepEqual(
    ['database', 'writes', 'hub', 'events', 'mail', 'clock', 'proxies'].filter(
      name => !quickFindings.some(({ check }) => check === name),
    ),
    [],
  )
  assert.ok(quickFindings.every(({ kind }) => kind === 'active'))
  await services.storage.engine.connection.execute("update audit_chain set hash = 'x'", [])
  const allFindings = await findingsOf('?check=all')
  assert.deepEqual([allFindings[0]!.check, allFindings[0]!.kind], ['audit', 'revoked'])
  assert.match(allFindings[0]!.detail, /Somebody changed the database directly/)
  assert.ok(allFindings.some(({ check, kind }) => check === 'public URL' && kind === 'active'))
  const crossSiteFindings = await findingsOf('?check=all', { 'sec-fetch-site': 'cross-site' })
  assert.ok(!crossSiteFindings.some(({ check }) => check === 'audit'), 'a link on another site runs nothing')

  const keysBefore = services.signingKeys.jwks().keys.length
  const path = '/admin/nodes/rotate-signing-keys'
  assert.equal((await post(support.client, '/account', path)).status, 404)
  assert.equal((await support.client.get(path)).status, 404)
  assert.match(await (await admin.client.get(path)).text(), /<h1>Rotate the signing keys\?<\/h1>/)
  assert.equal((await post(admin.client, path, path, { reason: 'yearly' })).status, 303)
  assert.ok(services.signingKeys.jwks().keys.length > keysBefore)
  assert.deepEqual(
    [(await auditEvents())[0]!.type, (await auditEvents())[0]!.reason?.text],
    ['signing_key.rotated', 'yearly'],
  )
})

test('the page of a person shows ten keys, and on request a hundred', async t => {
  const { signUp, createKey } = await openAdministration(t)
  const [admin, ada] = [await signUp('admin', 'admin'), await signUp('ada', 'user')]
  for (let n = 0; n < 12; n++) await createKey(ada.id)
  const keysShownOn = async (path: string) => {
    const text = await (await admin.client.get(path)).text()
    return {
      keys: text.match(/class="name" href="\/admin\/keys\/[0-9a-f-]{36}"/g)!.length,
      more: text.match(/href="([^"]*rows=more)"/)?.[1],
    }
  }
  const firstPage = await keysShownOn(`/admin/users/${ada.id}`)
  assert.equal(firstPage.keys, 10)
  assert.deepEqual(await keysShownOn(firstPage.more!), { keys: 12, more: undefined })
})
