import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BY_COMMAND_LINE } from '../../src/audit/audit.ts'
import { parseEmailAddress } from '../../src/users/email-address.ts'
import { signedInClient } from '../support/page-client.ts'
import { startWeb } from '../support/web.ts'

const SECRET = /sva_[\w-]{43}/

test('an administrator registers an app, changes it, replaces its secret with an overlap, and removes it', async t => {
  const web = await startWeb(t)
  const { services } = web.server
  const { store } = services.storage
  const admin = await signedInClient(web, 'admin@example.com')
  const { id } = (await store.users.findByEmail(parseEmailAddress('admin@example.com')!))!
  await services.users.setRole(id, 'admin', BY_COMMAND_LINE)
  const send = async (path: string, fields: Record<string, string> = {}) =>
    admin.post(path, { form_token: await admin.formToken('/admin/register-app'), ...fields })
  const signsIn = async (secret: string) => (await services.apps.authenticate('shop', secret)) !== null

  const typedFields = { id: 'shop', name: '<i>Shop</i>', redirect_uris: 'http://evil.example\n' }
  const refusal = await send('/admin/apps', typedFields)
  assert.equal(refusal.status, 400)
  const refilledForm = await refusal.text()
  assert.ok(
    refilledForm.includes('redirect_uris: must not contain') && refilledForm.includes('&lt;i&gt;Shop'),
    'refilled',
  )
  const redirect_uris = 'https://shop.example.com/callback\r\nhttps://shop.example.com/other'
  const creationResponse = await send('/admin/apps', { ...typedFields, redirect_uris, trusted: 'true' })
  assert.equal(creationResponse.status, 201)
  assert.equal(creationResponse.headers.get('referrer-policy'), 'no-referrer')
  const firstSecret = SECRET.exec(await creationResponse.text())![0]
  assert.ok(await signsIn(firstSecret))
  const app = await services.apps.find('shop')
  assert.deepEqual([app.redirectUris.length, app.trusted, app.isPublic], [2, true, false])

  const changeResponse = await send('/admin/apps/shop/change', {
    name: 'Shop',
    redirect_uris,
    scopes: 'keys:read',
  })
  assert.equal(changeResponse.headers.get('location'), '/admin/apps/shop?done=app_saved')
  const { trusted, scopes } = await services.apps.find('shop')
  assert.deepEqual([trusted, scopes], [false, ['keys:read']])
  assert.equal((await send('/admin/apps/shop/change', { name: '', redirect_uris })).status, 400)

  assert.equal((await send('/admin/apps/shop/new-secret')).status, 400, 'without a reason')
  const reason = 'every year'
  const secondSecret = SECRET.exec(await (await send('/admin/apps/shop/new-secret', { reason })).text())![0]
  assert.ok((await signsIn(firstSecret)) && (await signsIn(secondSecret)), 'both work during the overlap')
  const page = await (await admin.get('/admin/apps/shop')).text()
  assert.doesNotMatch(page, SECRET)
  assert.match(page, /newest.*by <a [^>]*>admin@example\.com<\/a>: <q>every year<.*older.*with the app/s)
  const ids = [...page.matchAll(/remove-secret\?secret=([^"]+)"/g)].map(([, value]) => value!)
  assert.equal(ids.length, 2)
  const replacementQuestion = await (await admin.get('/admin/apps/shop/new-secret')).text()
  assert.ok(
    replacementQuestion.includes(`name="removes" value="${ids[1]}"`) &&
      replacementQuestion.includes('removes this one at once'),
  )
  const staleRemoval = await send('/admin/apps/shop/new-secret', { reason, removes: ids[0]! })
  assert.equal(staleRemoval.status, 400, 'another would be removed')
  assert.ok((await signsIn(firstSecret)) && (await signsIn(secondSecret)))
  const removalQuestion = await (await admin.get(`/admin/apps/shop/remove-secret?secret=${ids[1]}`)).text()
  assert.match(removalQuestion, /The other secret keeps working/)
  const removal = { secret: ids[1]!, reason: 'leaked' }
  assert.equal((await send('/admin/apps/shop/remove-secret', { secret: ids[1]! })).status, 400)
  assert.equal((await send('/admin/apps/shop/remove-secret', removal)).status, 303)
  assert.deepEqual([await signsIn(firstSecret), await signsIn(secondSecret)], [false, true])
  assert.equal((await send('/admin/apps/shop/remove-secret', removal)).status, 404)
  assert.equal((await admin.get(`/admin/apps/shop/remove-secret?secret=${ids[1]}`)).status, 404)
  assert.match(
    await (await admin.get(`/admin/apps/shop/remove-secret?secret=${ids[0]}`)).text(),
    /cannot authenticate until it gets a new one/,
  )

  assert.equal((await send('/admin/apps/shop/remove', { confirm: 'shopp' })).status, 400)
  const removalResponse = await send('/admin/apps/shop/remove', { confirm: 'shop', reason: 'closed' })
  assert.equal(removalResponse.headers.get('location'), '/admin/apps?done=app_removed')
  assert.equal((await admin.get('/admin/apps/shop')).status, 404)
  assert.equal((await send('/admin/apps/console/remove', { confirm: 'console' })).status, 403)
  const { rows } = await store.audit.list({ actor: id }, { limit: 20, after: null })
  assert.deepEqual(
    rows.toReversed().map(({ type }) => type),
    ['app.registered', 'app.updated', 'app.secret_created', 'app.secret_removed', 'app.removed'],
  )
  assert.equal(rows[0]!.reason?.text, 'closed')
  assert.ok(!JSON.stringify(rows).includes('shop.example.com'))
})

test('support sees apps and their settings without a form, and everybody else a missing page', async t => {
  const web = await startWeb(t)
  const { services } = web.server
  const idOf = async (email: string) =>
    (await services.storage.store.users.findByEmail(parseEmailAddress(email)!))!.id
  await services.apps.register({
    id: 'shop',
    name: 'Shop',
    redirectUris: ['https://shop.example.com/callback'],
  })
  const [support, user] = [
    await signedInClient(web, 'support@example.com'),
    await signedInClient(web, 'user@example.com'),
  ]
  await services.users.setRole(await idOf('support@example.com'), 'support', BY_COMMAND_LINE)
  for (const path of ['/admin/apps', '/admin/apps?kind=self', '/admin/apps/shop', '/admin/register-app']) {
    const text = await (await support.get(path)).text()
    assert.doesNotMatch(text, /method="post" action="\/admin/, path)
    assert.equal((await user.get(path)).status, 404, path)
  }
  assert.match(await (await support.get('/admin/apps/shop')).text(), /shop\.example\.com\/callback/)
  const form_token = await support.formToken('/account')
  for (const path of ['/admin/apps', '/admin/apps/shop/remove'])
    assert.equal((await support.post(path, { form_token, id: 'x', confirm: 'shop' })).status, 404)
})
