import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createJourney } from '../support/journey.ts'
import { signedInClient } from '../support/page-client.ts'
import { startWeb } from '../support/web.ts'

test('the pages show time, network and client of a key’s last use, and its days as bars and as a table', async t => {
  const web = await startWeb(t)
  const client = await signedInClient(web)
  const form_token = await client.formToken('/keys')
  const keyPage = await (await client.post('/keys', { form_token, name: 'robot', access: 'all' })).text()
  const key = /svc_[0-9A-Za-z]{32}/.exec(keyPage)![0]
  const keyPath = /href="(\/keys\/[0-9a-f-]{36})"/.exec(await (await client.get('/keys')).text())![1]!
  assert.match(
    await (await client.get(keyPath)).text(),
    /Nothing in the last 30 days\. New uses appear here within seconds\./,
  )

  await createJourney(web.url).exchange(key)
  await web.server.services.apiKeys.flushUses()
  const afterUse = await (await client.get(keyPath)).text()
  // Counts are stored every five seconds, perhaps just now.
  assert.match(
    afterUse,
    /It was used just now\. The use is counted here within seconds\.|aria-label="1 use and 0 refusals in 30 days\."/,
  )
  assert.doesNotMatch(afterUse, /Nothing in the last/, 'as the last use on the same page says')
  await fetch(`${web.url}/auth/agent-token`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'User-Agent': '<b>robot</b>/1.0' },
    body: JSON.stringify({ api_key: key }),
  })
  const keyOptions = { headers: { Authorization: `Bearer ${key}` } }
  assert.equal((await fetch(`${web.url}/v1/api-keys`, { ...keyOptions, method: 'POST' })).status, 403)
  await web.server.services.meter.flush()

  const text = await (await client.get(keyPath)).text()
  assert.match(
    text,
    /<dt>Last used from<\/dt><dd><code>(127\.0\.0\.1|::\/64)<\/code> ·&nbsp;<bdi>&lt;b&gt;robot&lt;\/b&gt;\/1\.0</,
  )
  assert.match(text, /<svg [^>]*role="img" aria-label="2 uses and 1 refusal in 30 days\."/)
  assert.match(text, /<rect class="uses"[^>]*\/><rect class="denied"/)
  const row = /<tr><th scope="row">.*?<\/tr>/s.exec(text)![0]
  assert.deepEqual(
    [...row.matchAll(/<td class="amount">(\d+)<\/td>/g)].map(([, count]) => Number(count)),
    [2, 0, 0, 0, 0, 1],
  )
  const list = await (await client.get('/keys')).text()
  assert.match(list, /<span class="from quiet">(127\.0\.0\.1|::\/64) · &lt;b&gt;robot&lt;/)
  assert.match(
    await (await client.get('/account/usage')).text(),
    /aria-label="2 uses and 1 refusal in 30 days\."/,
  )
  t.diagnostic(`a row of the list has ${Buffer.byteLength(/<tr class="key.*?<\/tr>/s.exec(list)![0])} bytes`)
})
