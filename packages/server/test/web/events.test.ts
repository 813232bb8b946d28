import assert from 'node:assert/strict'
import { test } from 'node:test'
import { securityEvent } from '../../src/security-events/security-event.ts'
import { parseEmailAddress } from '../../src/users/email-address.ts'
import { ADA, createClient, signedInClient } from '../support/page-client.ts'
import { caller } from '../support/services.ts'
import { startWeb } from '../support/web.ts'

test('security events name their key and their session, and are filtered by what they are about', async t => {
  const web = await startWeb(t)
  const client = await signedInClient(web)
  const form_token = await client.formToken('/keys')
  await client.post('/keys', { form_token, name: 'robot', access: 'agent' })
  await client.post('/keys', { form_token, name: 'other', access: 'agent' })
  const allEventsPage = await (await client.get('/account/events')).text()
  assert.match(
    allEventsPage,
    /Key created <span class="about"><a href="(\/keys\/[0-9a-f-]+)"><bdi>robot<\/bdi><\/a>/,
  )
  const otherBrowser = await signedInClient(web)
  await client.post('/sessions/end-others', { form_token })
  assert.equal((await otherBrowser.get('/keys')).status, 303)
  const signInEvents = await (await client.get('/account/events?group=sign_ins')).text()
  assert.match(signInEvents, /Session ended <span class="about">Session: Node\.js</)
  const groups = async (group: string) =>
    [
      ...(await (await client.get(`/account/events?group=${group}`)).text()).matchAll(
        /class="item event"><span>([^<]+?) ?</g,
      ),
    ].map(([, name]) => name)
  assert.deepEqual(await groups('keys'), ['Key created', 'Key created'])
  assert.deepEqual(await groups('sign_ins'), ['Session ended', 'Signed in', 'Signed in'])
  assert.deepEqual(await groups('apps'), [])
  const id = /\/keys\/([0-9a-f-]{36})"><bdi>robot/.exec(allEventsPage)![1]!
  const keyEvents = await (await client.get(`/account/events?key=${id}`)).text()
  assert.match(keyEvents, /Only of the key <a href="[^"]+"><bdi>robot<\/bdi><\/a>\./)
  assert.equal(keyEvents.match(/class="item event"/g)?.length, 1)
  const eve = await signedInClient(web, 'eve@example.com')
  assert.equal((await eve.get(`/account/events?key=${id}`)).status, 404)
  assert.match(
    await (await client.get(`/keys/${id}`)).text(),
    new RegExp(`href="/account/events\\?key=${id}"`),
  )
})

test('a revoked key says who revoked it: its owner’s program and network, or the operator', async t => {
  const web = await startWeb(t)
  const client = await signedInClient(web)
  const { services } = web.server
  const user = (await services.storage.store.users.findByEmail(parseEmailAddress(ADA)!))!
  const owner = caller('203.0.113.7', 'curl/8')
  for (const [by, says] of [
    [owner, '<bdi>curl/8</bdi> <code>203.0.113.7</code>'],
    [null, 'by the operator'],
  ] as const) {
    const newKey = { name: null, scopes: null, allowedNetworks: [], appId: 'service-sdk', expiresAt: null }
    const { apiKey } = await services.apiKeys.create(user.id, newKey, owner)
    await services.apiKeys.revoke(user.id, apiKey.id, by)
    const [, revoked] = /<dt>Revoked<\/dt><dd>(.*?)<\/dd>/.exec(
      await (await client.get(`/keys/${apiKey.id}`)).text(),
    )!
    assert.ok(revoked!.endsWith(` · ${says}`), revoked!)
  }
})

test('ten thousand security events are paged and exported as a whole or filtered', async t => {
  const web = await startWeb(t)
  const client = await signedInClient(web)
  const { services } = web.server
  const user = (await services.storage.store.users.findByEmail(parseEmailAddress(ADA)!))!
  const now = services.clock.now()
  await services.storage.transaction(async tx => {
    for (let n = 0; n < 10_000; n++)
      await tx.securityEvents.insert(
        securityEvent(n % 2 ? 'session_ended' : 'consent_granted', user.id, now - n, null),
      )
  })
  let path: string | null = '/account/events?group=apps'
  let rowCount = 0
  for (let pages = 0; path && pages < 3; pages++) {
    const text: string = await (await client.get(path)).text()
    const eventCount = text.match(/class="item event"/g)?.length ?? 0
    assert.equal(eventCount, 50)
    rowCount += eventCount
    const nextLink: RegExpExecArray | null = /href="(\/account\/events\?[^"]+)">Older events</.exec(text)
    path = nextLink && nextLink[1]!.replaceAll('&amp;', '&')
  }
  assert.equal(rowCount, 150)
  const csv = await client.get('/account/events/export.csv?group=apps')
  assert.equal(csv.headers.get('content-disposition'), 'attachment; filename="security-events.csv"')
  assert.equal((await csv.text()).trimEnd().split('\r\n').length, 5001)
  const exportedLines = (await (await client.get('/account/events/export.jsonl')).text())
    .trimEnd()
    .split('\n')
  assert.equal(exportedLines.length, 10_000 + 2)
  assert.equal((await client.get('/account/events/export.xml')).status, 404)
  assert.equal((await createClient(web.url).get('/account/events/export.csv')).status, 303)
})
