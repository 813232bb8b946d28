import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { DAY } from '../../src/clock.ts'
import { newId } from '../../src/ids.ts'
import { parseEmailAddress } from '../../src/users/email-address.ts'
import { aKey } from '../contract/fixtures.ts'
import { sharedBrowser } from '../support/browser.ts'
import { ADA, type Client, signedInClient } from '../support/page-client.ts'
import { newPerson, signIn, startWeb } from '../support/web.ts'

const openBrowser = sharedBrowser()

interface NewKey {
  name?: string | null
  expiresIn?: number
  usedAgo?: number
  isRevoked?: boolean
}

async function open(t: TestContext) {
  const web = await startWeb(t, { KEYWAY_MAX_ACTIVE_KEYS: '5000' })
  const { services } = web.server
  const { store } = services.storage
  const idOf = async (email: string) => (await store.users.findByEmail(parseEmailAddress(email)!))!.id
  /** Adds keys, the first one the newest. */
  const addKeys = async (email: string, keys: readonly NewKey[]) => {
    const userId = await idOf(email)
    const now = services.clock.now()
    const rows = keys.map(({ name = null, expiresIn, usedAgo, isRevoked }, at) =>
      aKey(userId, {
        id: newId(now - at),
        name,
        createdAt: now - at - 1,
        expiresAt: expiresIn === undefined ? null : now + expiresIn,
        lastUsedAt: usedAgo === undefined ? null : now - usedAgo,
        revokedAt: isRevoked ? now : null,
      }),
    )
    await services.storage.transaction(async tx => {
      for (const row of rows) await tx.apiKeys.insert(row, null)
    })
    return rows.map(({ id }) => id)
  }
  return { web, services, addKeys }
}

test('the row of a key with many scopes names all of them in the title of its access', async t => {
  const { web, services } = await open(t)
  const client = await signedInClient(web)
  const { id } = (await services.storage.store.users.findByEmail(parseEmailAddress(ADA)!))!
  const scopes = ['agent:connect', 'agents:send', 'agents:read', 'account:read', 'orders:read'] as const
  await services.storage.transaction(tx => tx.apiKeys.insert(aKey(id, { scopes }), null))
  const page = await (await client.get('/keys')).text()
  assert.match(page, new RegExp(`title="${scopes.join(' ')}">[^<]* and 2 more</td>`))
})

/** The names of the keys on a page of the list, in order. */
async function namesOn(client: Client, path: string): Promise<string[]> {
  const answer = await client.get(path)
  assert.equal(answer.status, 200, path)
  return [
    ...(await answer.text()).matchAll(/<a class="name" href="[^"]+"><(?:bdi|span class="quiet")>([^<]*)</g),
  ].map(([, name]) => name!)
}

test('keys are found by a part of their name, by the beginning of the key and by their id', async t => {
  const { web, addKeys } = await open(t)
  const client = await signedInClient(web)
  const [robotId] = await addKeys(ADA, [{ name: 'Living-room Robot' }, { name: 'CI' }, { name: null }])
  await signedInClient(web, 'eve@example.com')
  await addKeys('eve@example.com', [{ name: 'robot of somebody else' }])
  for (const query of ['ROBOT', 'room', robotId!, robotId!.toUpperCase(), ' living '])
    assert.deepEqual(
      await namesOn(client, `/keys?query=${encodeURIComponent(query)}`),
      ['Living-room Robot'],
      query,
    )
  assert.equal((await namesOn(client, '/keys?query=svc_')).length, 3)
  assert.deepEqual(await namesOn(client, '/keys?query=nothing+has+this'), [])
  const page = await (await client.get(`/keys?query=${encodeURIComponent('"><script>')}`)).text()
  assert.doesNotMatch(page, /"><script>/)
  assert.match(page, /No key contains that/)
})

test('keys are sorted by name, last use and expiry, and the counts of each status are shown', async t => {
  const { web, addKeys } = await open(t)
  const client = await signedInClient(web)
  await addKeys(ADA, [
    { name: 'robot 10', usedAgo: 3000, expiresIn: 3 * DAY },
    { name: 'Robot 9', usedAgo: 1000 },
    { name: null, expiresIn: DAY },
    { name: 'alpha', usedAgo: 2000, expiresIn: 2 * DAY },
    { name: 'gone', isRevoked: true },
    { name: 'over', expiresIn: -DAY },
  ])
  const namesSortedBy = async (sort: string) =>
    (await namesOn(client, `/keys?status=active&sort=${sort}`)).slice(0, 3)
  assert.deepEqual(await namesSortedBy('name'), ['alpha', 'Robot 9', 'robot 10'])
  assert.deepEqual(await namesSortedBy('used'), ['Robot 9', 'alpha', 'robot 10'])
  assert.deepEqual(await namesSortedBy('expires'), ['Unnamed key', 'alpha', 'robot 10'])
  assert.deepEqual(await namesSortedBy('nonsense'), ['robot 10', 'Robot 9', 'Unnamed key'])
  const page = await (await client.get('/keys')).text()
  const counts = [...page.matchAll(/(\w+) <span class="count">([\d,+]+)</g)].map(([, name, count]) => [
    name,
    count,
  ])
  assert.deepEqual(counts, [
    ['All', '6'],
    ['Active', '4'],
    ['Expired', '1'],
    ['Revoked', '1'],
  ])
})

test('with a hundred keys every page has twenty, and sorted or searched pages contain each key once', async t => {
  const { web, addKeys } = await open(t)
  const client = await signedInClient(web)
  await addKeys(
    ADA,
    Array.from({ length: 100 }, (_, n) => ({ name: `key ${n}` })),
  )
  for (const start of ['/keys', '/keys?sort=name', '/keys?query=key']) {
    const seenNames: string[] = []
    let path: string | null = start
    let pageCount = 0
    while (path) {
      const text: string = await (await client.get(path)).text()
      const names = [...text.matchAll(/<a class="name" href="[^"]+"><bdi>([^<]*)</g)].map(([, name]) => name!)
      assert.ok(names.length <= 20)
      assert.match(
        text,
        new RegExp(`>${seenNames.length + 1}–${seenNames.length + names.length} of 100<`),
        path,
      )
      seenNames.push(...names)
      const nextLink: RegExpExecArray | null = /href="(\/keys\?[^"]+)">(?:Next page|Older keys)</.exec(text)
      path = nextLink && nextLink[1]!.replaceAll('&amp;', '&')
      pageCount++
    }
    assert.equal(pageCount, 5, start)
    assert.equal(new Set(seenNames).size, 100, start)
  }
})

test('a search among thousands of keys considers the newest thousand, says so, and goes on with older ones', async t => {
  const { web, addKeys } = await open(t)
  const client = await signedInClient(web)
  await addKeys(
    ADA,
    Array.from({ length: 2100 }, (_, n) => ({ name: n === 1500 ? 'needle' : `hay ${n}` })),
  )
  const firstPage = await (await client.get('/keys?query=needle')).text()
  assert.match(firstPage, /Of the 1,000 newest keys only/)
  assert.match(firstPage, /All <span class="count">1,000\+</)
  const olderPath = /href="(\/keys\?[^"]+)">Search older keys</.exec(firstPage)![1]!.replaceAll('&amp;', '&')
  assert.deepEqual(await namesOn(client, olderPath), ['needle'])
})

test('several keys are revoked together after one question, without scripts, and never those of others', async t => {
  const { web, services, addKeys } = await open(t)
  const client = await signedInClient(web)
  const ids = await addKeys(ADA, [
    { name: 'one' },
    { name: 'two' },
    { name: 'three' },
    { name: 'old', isRevoked: true },
  ])
  await signedInClient(web, 'eve@example.com')
  const [evesKey] = await addKeys('eve@example.com', [{ name: 'hers' }])
  const selectedIds = [ids[0]!, ids[1]!, ids[3]!, evesKey!, 'nonsense']
  const page = await (await client.get(`/keys/revoke?${selectedIds.map(id => `id=${id}`).join('&')}`)).text()
  assert.match(page, /Revoke 2 keys\?/)
  assert.match(page, /<li><bdi>one<\/bdi> <code>/)
  assert.doesNotMatch(page, /hers|old<\/bdi> <code>/)

  const form_token = await client.formToken('/keys')
  const body = new URLSearchParams([['form_token', form_token], ...selectedIds.map(id => ['id', id])])
  const answer = await client.post('/keys/revoke', Object.fromEntries(body))
  assert.equal(answer.status, 303)
  const fields = [['form_token', form_token], ...selectedIds.map(id => ['id', id])] as [string, string][]
  const cookie = [...client.jar].map(([name, value]) => `${name}=${value}`).join('; ')
  const revocation = await fetch(`${web.url}/keys/revoke`, {
    method: 'POST',
    redirect: 'manual',
    headers: { cookie, 'sec-fetch-site': 'same-origin', accept: 'text/html' },
    body: new URLSearchParams(fields),
  })
  assert.equal(revocation.headers.get('location'), '/keys?done=keys_revoked')
  const states = await services.apiKeys.findMany([...ids, evesKey!])
  assert.deepEqual(
    [...ids, evesKey!].map(id => states.get(id)!.revokedAt !== null),
    [true, true, false, true, false],
  )
  const responseWithoutSelection = await client.get('/keys/revoke')
  assert.equal(responseWithoutSelection.status, 400)
  assert.match(await responseWithoutSelection.text(), /Select at least one active key/)
})

test('the bar of selected keys counts them, stays in the window while some are, and revokes them', async t => {
  const browser = await openBrowser(t)
  if (!browser) return
  const { web, addKeys } = await open(t)
  const { page } = await newPerson(browser)
  await signIn(page, web, ADA)
  const names = Array.from({ length: 20 }, (_, at) => `robot ${String(at + 1).padStart(2, '0')}`)
  await addKeys(
    ADA,
    names.map(name => ({ name })),
  )
  const barExpression = `(() => {
    const bar = document.querySelector('.bar')
    const { top, bottom, height } = bar.getBoundingClientRect()
    return { isInWindow: bar.checkVisibility() && top >= 0 && bottom <= innerHeight, height }
  })()`
  const barPosition = () => page.evaluate<{ isInWindow: boolean; height: number }>(barExpression)
  const selectedBoxes = page.locator('tbody input.select:checked')
  for (const width of [1280, 390]) {
    await page.setViewportSize({ width, height: 800 })
    await page.goto(`${web.url}/keys`)
    assert.equal((await barPosition()).isInWindow, false, `${width}`)
    await page.getByRole('checkbox', { name: 'Select robot 20' }).check()
    await page.getByText('Selected: 1').waitFor()
    const { isInWindow, height } = await barPosition()
    assert.ok(isInWindow && height < 160, `${width}: ${height}`)
    await page.getByRole(width > 1000 ? 'checkbox' : 'button', { name: 'Select all on this page' }).click()
    await page.getByText('Selected: 20').waitFor()
    assert.equal(await selectedBoxes.count(), 20)
  }
  await page.getByRole('button', { name: 'Revoke selected keys' }).click()
  await page.getByRole('heading', { name: 'Revoke 20 keys?' }).waitFor()
  await page.getByRole('button', { name: 'Revoke these 20 keys' }).click()
  await page.getByText('The keys were revoked.').waitFor()
  await page.waitForLoadState('load')
  assert.equal(await page.locator('tr.key.revoked').count(), 20)
})
