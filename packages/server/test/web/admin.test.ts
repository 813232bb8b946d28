import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BY_COMMAND_LINE } from '../../src/audit/audit.ts'
import { newId } from '../../src/ids.ts'
import { REAUTHENTICATION_WINDOW } from '../../src/sessions/reauthentication.ts'
import { openAdministration } from '../support/administrators.ts'
import { createClient } from '../support/page-client.ts'
import { until } from '../support/patience.ts'

const PATHS = [
  '',
  '/users',
  '/keys',
  '/agents',
  '/apps',
  '/mails',
  '/webhooks',
  '/invitations',
  '/policies',
  '/nodes',
  '/audit',
  '/confirm',
]

test('the overview draws what happened in the chosen period, with a title, a description and a table of the same numbers', async t => {
  const { signUp, services } = await openAdministration(t)
  const admin = await signUp('admin', 'admin')
  await services.statistics.measure(12)
  for (const [period, unit] of [
    ['', 'Day'],
    ['?period=day', 'Hour'],
    ['?period=constructor', 'Day'],
  ] as const) {
    const text = await (await admin.client.get(`/admin${period}`)).text()
    assert.match(text, /<svg [^>]*role="img" aria-labelledby="sign-ups-title sign-ups-desc"/)
    assert.match(
      text,
      /<title id="sign-ups-title">Sign-ups<\/title><desc id="sign-ups-desc">Sign-ups, [^<]*: 1 /,
    )
    assert.match(text, /<desc id="agents-desc">Live agents, [^<]*: 0 now, at most 12 at once\.</)
    assert.match(text, /1 node, 0 live agents <span class="tag active">No problem found</)
    assert.match(text, /<path class="level" d="M\d+ 0h10v60h-10z"\/>/)
    assert.match(text, /<desc id="people-desc">People, [^<]*: 1 now\.</, 'counted, though measured before')
    assert.ok(text.includes(`<th scope="col">${unit} (UTC)</th>`), unit)
    assert.match(text, /<tr><th scope="row"><time.*?<\/th><td class="amount">1<\/td>/)
  }
})

test('for everybody but administrators and support the pages do not exist, also after a role was withdrawn', async t => {
  const { signUp, services } = await openAdministration(t)
  const admin = await signUp('admin', 'admin')
  const formerAdmin = await signUp('former', 'admin')
  const user = await signUp('user', 'user')
  const paths = [...PATHS, `/users/${user.id}`]
  for (const path of paths) {
    assert.equal((await formerAdmin.client.get(`/admin${path}`)).status, 200, path)
    assert.equal((await user.client.get(`/admin${path}`)).status, 404, path)
  }
  await services.users.setRole(formerAdmin.id, 'user', BY_COMMAND_LINE)
  for (const path of paths) assert.equal((await formerAdmin.client.get(`/admin${path}`)).status, 404, path)
  const text = await (await user.client.get('/keys')).text()
  assert.ok(!text.includes('/admin'))
  assert.match(await (await admin.client.get('/keys')).text(), /href="\/admin"/)
})

test('support sees every page and no form that changes anything, and a forged one is refused', async t => {
  const { signUp, post, store } = await openAdministration(t)
  await signUp('admin', 'admin')
  const support = await signUp('support', 'support')
  const user = await signUp('user', 'user')
  for (const path of [...PATHS, `/users/${user.id}`, `/users/${user.id}?show=mails`]) {
    const text = await (await support.client.get(`/admin${path}`)).text()
    assert.doesNotMatch(text, /method="post" action="\/admin/, path)
  }
  const forgedPost = await post(support.client, '/account', `/admin/users/${user.id}/suspend`, {
    reason: 'x',
  })
  assert.equal(forgedPost.status, 404)
  const promotionResponse = await post(support.client, '/account', `/admin/users/${support.id}/role`, {
    role: 'admin',
  })
  assert.equal(promotionResponse.status, 404)
  assert.equal((await store.users.find(user.id))!.status, 'active')
  assert.equal((await store.users.find(support.id))!.role, 'support')
})

test('an administrator searches, suspends, credits and deletes a person on the pages, and each act is recorded', async t => {
  const { signUp, post, store, auditEvents } = await openAdministration(t)
  const admin = await signUp('admin', 'admin')
  const ada = await signUp('ada', 'user')
  const path = `/admin/users/${ada.id}`
  const searchPage = await (await admin.client.get('/admin/users?query=ada@')).text()
  assert.ok(searchPage.includes(`href="${path}"`) && !searchPage.includes(admin.email.concat('</a>')))
  const send = (act: string, fields?: Record<string, string>) =>
    post(admin.client, path, `${path}/${act}`, fields)
  assert.equal((await send('suspend', { reason: ' ' })).status, 400)
  assert.equal((await send('suspend', { reason: '\0\u001b' })).status, 400)
  assert.equal((await admin.client.get('/admin/users?query=a%00')).status, 200)
  assert.equal((await send('suspend', { reason: 'spam' })).headers.get('location'), `${path}?done=suspended`)
  assert.equal((await store.users.find(ada.id))!.status, 'suspended')
  assert.equal((await send('activate')).status, 303)
  const auditPage = await (await admin.client.get('/admin/audit')).text()
  assert.ok(auditPage.includes('Account suspended') && auditPage.includes('spam'))
  const credit = { amount: '5.00', description: 'Sorry', once: newId(0) }
  for (let sent = 0; sent < 2; sent++) assert.equal((await send('credit', credit)).status, 303)
  assert.equal(await store.billing.balance(ada.id), 7_000_000)
  assert.equal((await send('credit', { ...credit, amount: 'much' })).status, 400)
  assert.equal((await send('role', { role: 'support', reason: 'helps out' })).status, 303)
  assert.equal((await send('role', { role: 'user' })).status, 400, 'without a reason')
  assert.equal((await send('role', { role: 'queen' })).status, 404)
  assert.equal((await send('end-sessions')).status, 303)
  assert.equal((await send('constructor')).status, 404)
  assert.equal((await send('delete', { confirm: 'other@example.com' })).status, 400)
  assert.equal((await send('delete', { confirm: ada.email })).status, 400, 'without a reason')
  assert.equal((await send('delete', { confirm: ada.email, reason: 'asked for' })).status, 303)
  assert.equal((await store.users.find(ada.id))!.status, 'deleted')
  assert.match(
    await (await admin.client.get(path)).text(),
    /Deleted by <a [^>]*>admin@example\.com<.*?<q>asked for</s,
  )
  const recordedTypes = (await auditEvents())
    .filter(({ actor }) => actor.id === admin.id)
    .map(({ type }) => type)
  assert.deepEqual(recordedTypes.toReversed(), [
    'user.suspended',
    'user.activated',
    'user.credit_granted',
    'user.role_changed',
    'user.deleted',
  ])
})

test('the own page of an administrator says so, and refuses what would lock them out', async t => {
  const { signUp, post, services, store } = await openAdministration(t)
  const admin = await signUp('admin', 'admin')
  await signUp('other', 'admin')
  const path = `/admin/users/${admin.id}`
  const text = await (await admin.client.get(path)).text()
  assert.match(text, /<span class="tag you">You<\/span>.*This session.*This is your own account/s)
  assert.doesNotMatch(text, /action="[^"]*\/(?:role|suspend|delete|end-sessions?)"/)
  const { id: session } = (await services.sessions.list(admin.id, { limit: 1, after: null })).rows[0]!
  const refusedActs: Record<string, Record<string, string>> = {
    role: { role: 'user' },
    suspend: {},
    'end-sessions': {},
    'end-session': { session },
    delete: { confirm: admin.email },
  }
  for (const [act, fields] of Object.entries(refusedActs)) {
    const refusal = await post(admin.client, path, `${path}/${act}`, { reason: 'mistaken', ...fields })
    assert.equal(refusal.status, 400, act)
    assert.match(await refusal.text(), /your own account/, act)
  }
  const { role, status } = (await store.users.find(admin.id))!
  assert.deepEqual([role, status], ['admin', 'active'])
  assert.match(
    await (await admin.client.get('/admin/users')).text(),
    /admin@example\.com<\/a> <span class="tag you">/,
  )
})

test('the page of a person and the search for an address say why mail is suppressed, and lift the suppression', async t => {
  const { signUp, post, services, web } = await openAdministration(t, { KEYWAY_MAGIC_LINK_LIMITS: '3/hour' })
  const admin = await signUp('admin', 'admin')
  const ada = await signUp('ada', 'user')
  const path = `/admin/users/${ada.id}`
  const textOf = async (at: string) => (await admin.client.get(at)).text()
  const notBlockedPattern =
    /Mail<\/dt><dd><span class="tag active">Allowed.*Sign-in limits<\/dt><dd><span class="tag active">OK/s
  assert.match(await textOf(path), notBlockedPattern)
  assert.doesNotMatch(await textOf(path), /Why sign-in may fail/)

  const strangersClient = createClient(web.url)
  const searchPath = '/admin/users?query=bob%40example.com'
  for (const email of [ada.email, 'bob@example.com'])
    await until(`${email} is refused`, async () => {
      const form_token = await strangersClient.formToken('/sign-in')
      return (await strangersClient.post('/sign-in', { form_token, email })).status === 429 || undefined
    })
  await services.suppressions.record(
    { addresses: [ada.email, 'bob@example.com'], reason: 'bounce' },
    'resend',
  )
  for (const [at, address] of [
    [path, ada.email],
    [searchPath, 'bob@example.com'],
  ] as const) {
    const text = await textOf(at)
    assert.match(text, /warn">Suppressed.*warn">Reached/s, at)
    assert.match(text, /It bounced · reported by resend/, at)
    assert.match(text, /a new browser asks for are refused for another \d+ (?:minutes|hour): /, at)
    const backPath = at.split('?')[0]!
    for (const act of ['lift', 'clear-limits']) {
      const response = await post(admin.client, at, `/admin/mails/${act}`, { address, back: backPath })
      assert.equal(response.status, 303)
      assert.ok(response.headers.get('location')!.startsWith(at))
    }
    assert.match(await textOf(at), notBlockedPattern)
  }
  assert.match(
    await textOf(searchPath),
    /No account has this address.*Sign-up<\/dt><dd><span class="tag active">Allowed/s,
  )
  await services.policies.change({ signUp: 'invited' }, BY_COMMAND_LINE)
  assert.match(
    await textOf(searchPath),
    /The policies let it not sign up.*<span class="tag warn">Not allowed</s,
  )
})

test('a revoked key says who revoked it and why, and the active key of a suspended owner that it is refused', async t => {
  const { signUp, post, services, createKey } = await openAdministration(t)
  const [admin, ada] = [await signUp('admin', 'admin'), await signUp('ada', 'user')]
  const [one, two, three] = [await createKey(ada.id), await createKey(ada.id), await createKey(ada.id)]
  const pageOf = async ({ apiKey }: typeof one) => (await admin.client.get(`/admin/keys/${apiKey.id}`)).text()
  await post(admin.client, `/admin/keys/${one.apiKey.id}`, `/admin/keys/${one.apiKey.id}/revoke`, {
    reason: 'leaked',
  })
  assert.match(await pageOf(one), /Revoked by <a [^>]*>admin@example\.com<.*?<q>leaked</s)
  const caller = { address: '198.51.100.7', network: '198.51.100.7', client: 'curl/8' }
  await services.apiKeys.revoke(ada.id, two.apiKey.id, caller)
  assert.match(await pageOf(two), /Revoked by its owner or whoever holds it, .*?curl.*?198\.51\.100\.7/s)
  assert.doesNotMatch(await pageOf(three), /Revoked by/)
  await services.users.suspend(ada.id, { ...BY_COMMAND_LINE, reason: 'spam' })
  const suspendedTagPattern = /<span class="tag warn">Suspended<\/span>/
  assert.match(await pageOf(three), suspendedTagPattern)
  for (const path of ['/admin/keys', `/admin/users/${ada.id}`]) {
    const text = await (await admin.client.get(path)).text()
    assert.match(text, suspendedTagPattern, path)
    assert.doesNotMatch(text, /<tr class="key active">.*<span class="tag active">Active/, path)
  }
  assert.match(
    await (await admin.client.get(`/admin/users/${ada.id}`)).text(),
    /Suspended by the keyway command, .*?<q>spam</s,
  )
})

test('policies are changed on their page, a mistake is shown on the filled form, and new keys follow them', async t => {
  const { signUp, post, services, auditEvents } = await openAdministration(t)
  const admin = await signUp('admin', 'admin')
  const ada = await signUp('ada', 'user')
  const page = '/admin/policies'
  const text = await (await admin.client.get(page)).text()
  assert.match(text, /name="default_lifetime" value="90"/)
  const fields = { default_lifetime: '30', sign_up: 'open', credit: '2.00', unrestricted: 'yes' }
  for (const [name, value] of [
    ['max_lifetime', 'long'],
    ['scopes', 'agent:fly'],
    ['domains', 'a@b.example'],
    ['credit', 'much'],
    ['maxima', '5/year'],
    ['sign_up', 'domains'],
  ] as const) {
    const refusal = await post(admin.client, page, page, { ...fields, [name]: value })
    const shownPage = await refusal.text()
    assert.equal(refusal.status, 400, name)
    assert.match(shownPage, /role="alert"/)
    assert.match(shownPage, /name="default_lifetime" value="30"/, 'what was typed is kept')
  }
  const policyFields = {
    ...fields,
    unrestricted: '',
    max_lifetime: '60',
    scopes: 'agent:connect',
    reason: 'audit',
  }
  const changeResponse = await post(admin.client, page, page, policyFields)
  assert.equal(changeResponse.headers.get('location'), `${page}?done=policies_saved`)
  const { maxKeyLifetimeDays, allowedScopes, unrestrictedKeysAllowed } = services.policies.current()
  assert.deepEqual(
    [maxKeyLifetimeDays, allowedScopes, unrestrictedKeysAllowed],
    [60, ['agent:connect'], false],
  )
  const [act] = await auditEvents()
  assert.deepEqual(
    [act!.type, act!.reason?.text, Object.keys(act!.after!).toSorted()],
    [
      'policies.changed',
      'audit',
      ['allowed_scopes', 'default_key_lifetime_days', 'max_key_lifetime_days', 'unrestricted_keys_allowed'],
    ],
  )

  const form = await (await ada.client.get('/keys/new')).text()
  assert.match(form, /id="expiry-30" name="expiry" value="30" checked/)
  assert.doesNotMatch(form, /expiry-never|expiry-90|access-all|scope-agents-read/)
  const refusal = await post(ada.client, '/keys/new', '/keys', { access: 'all', expiry: 'never' })
  assert.equal(refusal.status, 400)
  assert.match(await refusal.text(), /Keys live at most 60 days here/)
  assert.match(await (await admin.client.get('/admin/keys?filter=violating')).text(), /No keys/)
})

test('an administrator invites and revokes on the page, and the link of the mail fills in the address', async t => {
  const { signUp, post, store, web } = await openAdministration(t)
  const admin = await signUp('admin', 'admin')
  const page = '/admin/invitations'
  for (const email of ['nobody', admin.email])
    assert.equal((await post(admin.client, page, page, { email, role: '' })).status, 400, email)
  assert.equal((await post(admin.client, page, page, { email: 'bob@example.com', role: '' })).status, 303)
  assert.equal(
    (await post(admin.client, page, page, { email: 'eve@example.com', role: 'admin', language: 'de' }))
      .status,
    303,
  )
  const { rows } = await store.invitations.list({ limit: 9, after: null })
  const invitationOfEve = rows.find(({ email }) => email === 'eve@example.com')!
  assert.equal(invitationOfEve.role, 'admin')
  for (const [email, subject] of [
    [invitationOfEve.email, 'Sie sind zu Keyway eingeladen'],
    ['bob@example.com', 'You are invited to Keyway'],
  ])
    await until(subject!, async () => {
      const answer = await fetch(`${web.url}/inbox?to=${email}`, { headers: { accept: 'application/json' } })
      const { data } = (await answer.json()) as { data: { subject: string }[] }
      return data.some(mail => mail.subject === subject) || undefined
    })
  assert.match(await (await admin.client.get(page)).text(), /Pending/)
  assert.equal((await post(admin.client, page, `${page}/${invitationOfEve.id}/revoke`)).status, 303)
  assert.notEqual((await store.invitations.find(invitationOfEve.id))!.revokedAt, null)
  const signIn = await fetch(`${web.url}/sign-in?email=bob%40example.com`)
  assert.match(await signIn.text(), /name="email" type="email" value="bob@example.com"/)
})

test('a person downloads the own data after a recent sign-in, and support that of a person, which is recorded', async t => {
  const { signUp, auditEvents, web } = await openAdministration(t)
  const support = await signUp('support', 'support')
  const ada = await signUp('ada', 'user')
  assert.match(await (await ada.client.get('/account')).text(), /href="\/account\/export"/)
  const ownExport = await ada.client.get('/account/export')
  assert.equal(ownExport.headers.get('content-disposition'), `attachment; filename="keyway-${ada.id}.json"`)
  const data = (await ownExport.json()) as { user: { email: string }; audit_events?: unknown }
  assert.deepEqual([data.user.email, data.audit_events], [ada.email, undefined])
  assert.equal((await fetch(`${web.url}/account/export`, { redirect: 'manual' })).status, 303)
  const path = `/admin/users/${ada.id}/export`
  assert.equal((await ada.client.get(path)).status, 404)
  const crossSiteExport = await support.client.get(path, { 'Sec-Fetch-Site': 'cross-site' })
  assert.equal(crossSiteExport.status, 404)
  assert.equal((await auditEvents()).filter(({ type }) => type === 'user.read').length, 0)
  const exportBySupport = (await (await support.client.get(path)).json()) as { audit_events: unknown[] }
  assert.ok(Array.isArray(exportBySupport.audit_events))
  assert.deepEqual((await auditEvents())[0]!.after, { read: 'export' })
})

test('a link from another site makes no administrator read what is recorded', async t => {
  const { signUp, auditEvents } = await openAdministration(t)
  const support = await signUp('support', 'support')
  const ada = await signUp('ada', 'user')
  const countReads = async () => (await auditEvents()).filter(({ type }) => type === 'user.read').length
  for (const show of ['ledger', 'mails']) {
    const path = `/admin/users/${ada.id}?show=${show}`
    const readsBefore = await countReads()
    for (const from of ['cross-site', 'same-site'])
      assert.equal((await support.client.get(path, { 'sec-fetch-site': from })).status, 200)
    assert.equal(await countReads(), readsBefore)
    await support.client.get(path, { 'sec-fetch-site': 'same-origin' })
    assert.equal(await countReads(), readsBefore + 1)
  }
})

test('keys are found by their beginning and revoked together', async t => {
  const { signUp, post, services, auditEvents } = await openAdministration(t)
  const admin = await signUp('admin', 'admin')
  const ada = await signUp('ada', 'user')
  const caller = { address: '127.0.0.1', network: '127.0.0.1', client: null }
  const newKey = { appId: 'x', allowedNetworks: [], scopes: null, name: '<b>robot</b>', expiresAt: null }
  const { apiKey, key } = await services.apiKeys.create(ada.id, newKey, caller)
  const text = await (await admin.client.get(`/admin/keys?prefix=${key.slice(0, 9)}`)).text()
  assert.ok(text.includes('&lt;b&gt;robot') && !text.includes('<b>robot') && !text.includes(key))
  assert.equal((await post(admin.client, '/admin/keys', '/admin/keys/revoke')).status, 400)
  const revocation = await post(admin.client, '/admin/keys', '/admin/keys/revoke', {
    id: apiKey.id,
    reason: 'leaked',
  })
  assert.equal(revocation.status, 303)
  assert.notEqual((await services.apiKeys.get(ada.id, apiKey.id)).revokedAt, null)
  assert.equal((await auditEvents())[0]!.reason?.text, 'leaked')
})

test('an old sign-in reads and is asked to confirm before it changes anything, and comes back', async t => {
  const { web, signUp, post, services, store } = await openAdministration(t)
  const admin = await signUp('admin', 'admin')
  const ada = await signUp('ada', 'user')
  const path = `/admin/users/${ada.id}`
  const cookieSession = (await services.sessions.list(admin.id, { limit: 1, after: null })).rows[0]!
  const authTime = cookieSession.authTime - REAUTHENTICATION_WINDOW
  await web.server.services.storage.engine.connection.execute(
    `update sessions set created_at = ${authTime}, auth_time = ${authTime} where id = '${cookieSession.id}'`,
    [],
  )
  const text = await (await admin.client.get(path)).text()
  assert.doesNotMatch(text, /method="post" action="\/admin/)
  assert.ok(text.includes(`/admin/confirm?to=${encodeURIComponent(path)}`))
  const refusal = await post(admin.client, '/account', `${path}/suspend`, { reason: 'spam' })
  assert.equal(refusal.headers.get('location'), `/admin/confirm?to=${encodeURIComponent(path)}`)
  assert.equal((await store.users.find(ada.id))!.status, 'active')

  const newKey = { name: 'x', scopes: null, expiresAt: null, appId: 'x', allowedNetworks: [] }
  const { apiKey } = await services.apiKeys.create(admin.id, newKey, null as never)
  const rotationResponse = await post(admin.client, '/account', `/keys/${apiKey.id}/rotate`)
  assert.equal(
    rotationResponse.headers.get('location'),
    '/admin/confirm',
    'a key that administers is no way around',
  )
  const creationResponse = await post(admin.client, '/account', '/keys', { access: 'all' })
  assert.equal(creationResponse.headers.get('location'), '/admin/confirm')

  const mailCountBefore = (await web.mails(admin.email, 0)).length
  const form_token = await admin.client.formToken(`/admin/confirm?to=${encodeURIComponent(path)}`)
  await admin.client.post('/sign-in', { form_token, email: admin.email })
  const [mail] = await web.mails(admin.email, mailCountBefore + 1)
  const token = new URL(mail!.link!).searchParams.get('token')!
  const verifyResponse = await admin.client.post('/verify', { form_token, token, email: admin.email })
  assert.equal(verifyResponse.headers.get('location'), path)
  assert.equal((await post(admin.client, path, `${path}/suspend`, { reason: 'spam' })).status, 303)
})

test('the confirmation leads to pages of the administration only', async t => {
  const { web, signUp } = await openAdministration(t)
  const admin = await signUp('admin', 'admin')
  for (const to of [
    'https://evil.example',
    '//evil.example',
    '/admin/../keys',
    '/sign-out',
    '/admin\\evil',
  ]) {
    const form_token = await admin.client.formToken(`/admin/confirm?to=${encodeURIComponent(to)}`)
    const count = (await web.mails(admin.email, 0)).length
    await admin.client.post('/sign-in', { form_token, email: admin.email })
    const [mail] = await web.mails(admin.email, count + 1)
    const token = new URL(mail!.link!).searchParams.get('token')!
    const verifyResponse = await admin.client.post('/verify', { form_token, token, email: admin.email })
    assert.equal(verifyResponse.headers.get('location'), '/admin', to)
  }
})
