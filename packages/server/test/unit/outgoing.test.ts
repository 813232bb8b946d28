import assert from 'node:assert/strict'
import { type LookupAddress, type LookupAllOptions, lookup } from 'node:dns'
import { createServer, type RequestListener } from 'node:http'
import { type TestContext, test } from 'node:test'
import { createAddressRule } from '../../src/outgoing/addresses.ts'
import { createOutgoing, OutgoingError } from '../../src/outgoing/outgoing.ts'
import { inTime, until } from '../support/patience.ts'

type LookupCallback = (error: Error | null, addresses: LookupAddress[]) => void

const LOCAL_NETWORKS = ['127.0.0.0/8', '::1/128']

test('only public addresses may be called, and those that the operator listed', () => {
  const { isPublic, isListed } = createAddressRule(['10.1.0.0/16'])
  for (const address of ['8.8.8.8', '1.1.1.1', '2606:4700:4700::1111', '::ffff:8.8.8.8'])
    assert.equal(isPublic(address), true, address)
  const nonPublicAddresses = [
    '0.0.0.0',
    '10.1.2.3',
    '100.64.0.1',
    '127.0.0.1',
    '169.254.169.254',
    '172.16.0.1',
    '192.168.1.1',
    '198.18.0.1',
    '224.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    '::ffff:127.0.0.1',
    '::ffff:169.254.169.254',
    '64:ff9b::7f00:1',
    '2001:db8::1',
    '2002:7f00:1::',
    'fc00::1',
    'fe80::1',
    'ff02::1',
    'no address',
  ]
  for (const address of nonPublicAddresses) assert.equal(isPublic(address), false, address)
  assert.equal(isListed('10.1.2.3'), true)
  assert.equal(isListed('10.2.2.3'), false)
})

test('the address that was checked is the one that is called, without redirects, within 64 KiB', async t => {
  const { url, calls } = await serve(t, (request, response) => {
    if (request.url === '/moved') response.writeHead(302, { location: '/elsewhere' }).end()
    else if (request.url === '/long') response.end('x'.repeat(64 * 1024 + 1))
    else if (request.url === '/cut') response.destroy()
    else response.end('answered')
  })
  const call = createOutgoing(LOCAL_NETWORKS)
  assert.equal((await call(`${url}/`)).text, 'answered')
  assert.equal((await call(`${url.replace('127.0.0.1', 'localhost')}/`)).text, 'answered')
  assert.equal((await call(`${url}/moved`)).status, 302)
  for (const path of ['/long', '/cut']) await assert.rejects(call(url + path), OutgoingError)
  assert.equal(calls(), 5)
})

test('what may not be called is not called: other schemes, credentials, private and plain addresses', async t => {
  const { url, calls } = await serve(t, (_request, response) => void response.end())
  const call = createOutgoing([])
  const port = new URL(url).port
  const refusedUrls = [
    url,
    `http://localhost:${port}/`,
    `https://127.0.0.1:${port}/`,
    `https://localhost:${port}/`,
    `https://[::1]:${port}/`,
    `https://2130706433:${port}/`,
    `https://user:secret@localhost:${port}/`,
    'file:///etc/passwd',
    'ftp://localhost/',
    'not a url',
  ]
  for (const each of refusedUrls) await assert.rejects(call(each), OutgoingError, each)
  const callListedNetworks = createOutgoing(LOCAL_NETWORKS)
  await assert.rejects(callListedNetworks('http://user:secret@localhost/'), OutgoingError)
  assert.equal(calls(), 0)
})

async function serve(t: TestContext, answer: RequestListener) {
  let calls = 0
  const server = createServer((request, response) => {
    calls++
    answer(request, response)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  const address = server.address()
  assert.ok(address && typeof address === 'object')
  return { url: `http://127.0.0.1:${address.port}`, calls: () => calls }
}

test('a call to a server that switches to another protocol fails instead of never ending', async t => {
  const { url } = await serve(t, ({ socket }) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: other\r\nconnection: upgrade\r\n\r\nany data')
  })
  await inTime('the call', assert.rejects(createOutgoing(LOCAL_NETWORKS)(url), OutgoingError))
})

test('a call whose server sends interim responses without end is ended after ten of them', async t => {
  const { url } = await serve(t, ({ url: path, socket }, response) => {
    socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(path === '/ten' ? 10 : 11))
    response.end('answered')
  })
  const call = createOutgoing(LOCAL_NETWORKS)
  assert.equal((await call(`${url}/ten`)).text, 'answered')
  await assert.rejects(call(url), /too many interim responses/)
})

test('of many calls to names whose server is silent, two at a time are looked up', async () => {
  const lookups: ((error: Error) => void)[] = []
  const resolve = ((_name: string, _options: object, done: (error: Error) => void) => {
    lookups.push(done)
  }) as never
  const call = createOutgoing([], resolve)
  const calls = Array.from({ length: 5 }, (_, at) => assert.rejects(call(`https://slow${at}.example.com/`)))
  await until('two look-ups', () => lookups.length === 2)
  for (let answered = 0; answered < 5; answered++) {
    assert.ok(lookups.length <= answered + 2)
    await until('the next look-up', () => lookups.length > answered)
    lookups[answered]!(new Error('no such name'))
  }
  await Promise.all(calls)
})

test('silent name servers of clients and of one webhook hold up no call to another webhook', async t => {
  const { url } = await serve(t, (_request, response) => void response.end('answered'))
  const pendingLookups: (() => void)[] = []
  const resolve = ((name: string, options: LookupAllOptions, done: LookupCallback) => {
    if (name === 'localhost') lookup(name, options, done)
    else pendingLookups.push(() => done(new Error('no such name'), []))
  }) as never
  const call = createOutgoing(LOCAL_NETWORKS, resolve)
  const failingCalls = ['a', 'b', 'c'].map(name =>
    call(`https://${name}.example.net/`, { urlProvider: 'client' }),
  )
  for (let at = 0; at < 3; at++) failingCalls.push(call('https://dead-webhook.example.com/'))
  const settledCalls = Promise.allSettled(failingCalls)
  await until('the look-ups', () => pendingLookups.length === 2)
  assert.equal((await call(url.replace('127.0.0.1', 'localhost'))).text, 'answered')
  for (let answered = 0; answered < 4; answered++) {
    await until('the next look-up', () => pendingLookups.length > answered)
    pendingLookups[answered]!()
  }
  assert.equal((await settledCalls).filter(({ status }) => status === 'rejected').length, 6)
})
