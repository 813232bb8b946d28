import assert from 'node:assert/strict'
import { test } from 'node:test'
import { anApp } from '../contract/fixtures.ts'
import { forEachEngine } from '../support/engines.ts'
import { address, caller, openServices } from '../support/services.ts'

forEachEngine(engine => {
  test('the answer and the queued mail are the same for an unknown, an active and a suspended account', async t => {
    const services = await openServices(engine, t)
    await services.signIn('known@example.com')
    await services.users.suspend((await services.signIn('held@example.com')).user.id)
    services.clock.advance(1000)
    const answers: unknown[] = []
    for (const email of ['known@example.com', 'held@example.com', 'stranger@example.com'].map(address)) {
      const answer = await services.magicLinks.send({ email, appId: 'console' }, caller())
      const rows = await services.store.outbox.recentFor(email, 10)
      const row = rows.find(({ createdAt }) => createdAt === services.clock.now())!
      const { id: _, recipient: __, sealedContent: ___, ...rest } = row
      answers.push({ expiresIn: answer.expiresIn, keys: Object.keys(answer).sort(), rest })
    }
    assert.deepEqual(answers[1], answers[0])
    assert.deepEqual(answers[2], answers[0])
  })

  test('the answer contains 300 seconds and a login id, and nothing of the mail', async t => {
    const services = await openServices(engine, t)
    const email = address('a@example.com')
    const answer = await services.magicLinks.send({ email, appId: 'console' }, caller())
    assert.deepEqual(Object.keys(answer).sort(), ['expiresIn', 'loginId'])
    assert.equal(answer.expiresIn, 300)
    const { token, code } = await services.lastLink('a@example.com')
    assert.ok(!JSON.stringify(answer).includes(token))
    assert.ok(!JSON.stringify(answer).includes(code))
  })

  test('a sign-in mail with less than 60 seconds of validity left is not sent', async t => {
    const services = await openServices(engine, t)
    await services.sendTo('a@example.com')
    const [row] = await services.store.outbox.recentFor(address('a@example.com'), 1)
    assert.equal(row?.sendBefore, services.clock.now() + 240_000)
    assert.equal(
      (await services.mailsTo('a@example.com', 'sign_in'))[0]?.expiresAt,
      services.clock.now() + 300_000,
    )
  })

  test('the link leads to the verification page with a token of 43 characters and the address', async t => {
    const services = await openServices(engine, t)
    const { link, token } = await services.sendTo('a@example.com')
    assert.match(token, /^[A-Za-z0-9_-]{43}$/)
    assert.equal(link, `https://keyway.test/verify?token=${token}&email=a%40example.com`)
    assert.notEqual((await services.sendTo('a@example.com')).token, token)
  })

  test('an address with characters of URL syntax is encoded in the link', async t => {
    const services = await openServices(engine, t)
    for (const local of ['u+tag', 'u&x=1', 'u#f', "o'neil", 'u*~', 'u?a/b']) {
      const email = `${local}@x.test`
      const { link, token } = await services.sendTo(email)
      const url = new URL(link)
      assert.equal(url.searchParams.get('email'), email)
      assert.equal(url.searchParams.get('token'), token)
      assert.deepEqual([...url.searchParams.keys()], ['token', 'email'])
      assert.doesNotMatch(link.slice(link.indexOf('?')), /[+'!*()#]/)
    }
  })

  test('the app is named unless it is the default, and the page keeps its own query and fragment', async t => {
    const verifyUrl = 'https://app.example.com/in?lang=de#here'
    const services = await openServices(engine, t, { verifyUrl })
    const mailOfApp = await services.sendTo('a@example.com', 'my-app')
    assert.equal(
      mailOfApp.link,
      `https://app.example.com/in?lang=de&token=${mailOfApp.token}&email=a%40example.com&app_id=my-app#here`,
    )
    assert.ok(!(await services.sendTo('a@example.com')).link.includes('app_id'))
  })

  test('the parameters follow whatever query the page has', async t => {
    for (const [page, prefix] of [
      ['https://app.example.com/in', '?'],
      ['https://app.example.com/in?', ''],
      ['https://app.example.com/in?lang=de', '&'],
      ['https://app.example.com/in?lang=de&', ''],
    ]) {
      const services = await openServices(engine, t, { verifyUrl: page })
      const { link, token } = await services.sendTo('a@example.com')
      assert.equal(link, `${page}${prefix}token=${token}&email=a%40example.com`)
    }
  })

  test('a registered app may have a verification page of its own', async t => {
    const services = await openServices(engine, t)
    await services.store.apps.insert(
      anApp({
        audience: null,
        verifyUrl: 'https://shop.example.com/sign-in',
        createdAt: services.clock.now(),
        coversFrom: services.clock.now(),
      }),
    )
    const { link } = await services.sendTo('a@example.com', 'shop')
    assert.equal(new URL(link).origin, 'https://shop.example.com')
    assert.equal(new URL((await services.sendTo('a@example.com')).link).origin, 'https://keyway.test')
  })
})
