import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { test } from 'node:test'
import { createCallers } from '../../src/http/caller.ts'
import { MIN_FORWARDED_REQUESTS } from '../../src/http/proxy-watch.ts'
import { createLog } from '../../src/log.ts'

const log = createLog('silent')
const proxiedCallers = createCallers({
  trustedProxies: ['127.0.0.0/8', '10.0.0.0/8'],
  host: '127.0.0.1',
  log,
})

function requestFrom(remoteAddress: string, headers: Record<string, string> = {}): IncomingMessage {
  return { socket: { remoteAddress }, headers } as unknown as IncomingMessage
}

const callerThrough = (forwarded: string) =>
  proxiedCallers.of(requestFrom('10.0.0.1', { 'x-forwarded-for': forwarded }))

test('the client behind trusted proxies is the right-most address that is not a trusted proxy', () => {
  assert.equal(callerThrough('1.2.3.4, 203.0.113.7').address, '203.0.113.7')
  assert.equal(callerThrough('1.2.3.4, 203.0.113.7, 10.0.0.9').address, '203.0.113.7')
  assert.equal(callerThrough('203.0.113.7:4711').address, '203.0.113.7')
  assert.equal(
    callerThrough(Array.from({ length: 20 }, (_, hop) => `198.51.100.${hop}`).join(',')).address,
    '198.51.100.19',
  )
})

test('an invalid entry of X-Forwarded-For ends the chain at the hop that added it', () => {
  assert.equal(callerThrough('203.0.113.7, garbage').address, '10.0.0.1')
  assert.equal(callerThrough('').address, '10.0.0.1')
  assert.equal(callerThrough('203.0.113.7, "><script>, 10.0.0.2').address, '10.0.0.2')
})

test('addresses of one IPv6 /64 are one network, and IPv4-mapped addresses are IPv4', () => {
  assert.equal(callerThrough('2001:db8::1').network, callerThrough('2001:DB8:0:0:ffff::2').network)
  assert.notEqual(callerThrough('2001:db8::1').network, callerThrough('2001:db8:0:1::1').network)
  assert.equal(callerThrough('::ffff:1.2.3.4').network, '1.2.3.4')
  assert.equal(callerThrough('::ffff:0102:0304').network, '1.2.3.4')
  assert.equal(callerThrough('[2001:db8::1]:443').network, callerThrough('2001:db8::9').network)
  assert.equal(callerThrough('fe80::1%eth0').address, 'fe80::1')
})

const FORWARDED_HEADERS = {
  'x-forwarded-for': '1.1.1.1',
  forwarded: 'for=1.1.1.1',
  'x-real-ip': '1.1.1.1',
  'cf-connecting-ip': '1.1.1.1',
}

/** Callers without trusted proxies, with their log warnings and a test clock. */
function openCallers() {
  const warnings: { peer: string }[] = []
  let nowMs = 0
  const callers = createCallers({
    trustedProxies: [],
    host: '127.0.0.1',
    log: { ...log, warn: fields => void warnings.push(fields as { peer: string }) },
    now: () => nowMs,
  })
  const call = (peer: string, headers: Record<string, string> = {}, times = 1) => {
    for (let n = 0; n < times; n++) assert.equal(callers.of(requestFrom(peer, headers)).address, peer)
  }
  return { callers, warnings, call, advance: (milliseconds: number) => (nowMs += milliseconds) }
}

test('forwarding headers are ignored without a trusted proxy', () => {
  openCallers().call('192.0.2.1', FORWARDED_HEADERS)
})

test('the log warns once an hour of each proxy that the settings do not list', () => {
  const { warnings, call, advance } = openCallers()
  call('10.0.0.1', FORWARDED_HEADERS, 50)
  call('10.0.0.2', FORWARDED_HEADERS, 50)
  call('10.0.0.3', {}, 50)
  assert.deepEqual(
    warnings.map(({ peer }) => peer),
    ['10.0.0.1', '10.0.0.2'],
  )
  advance(3_600_000)
  call('10.0.0.1', FORWARDED_HEADERS)
  assert.equal(warnings.length, 3)
})

test('requests from public addresses cannot cause a failed proxy check of /readyz', () => {
  const { callers, call } = openCallers()
  for (const stranger of ['192.0.2.1', '203.0.113.9', '2001:db8::1']) call(stranger, FORWARDED_HEADERS, 1000)
  assert.equal(callers.proxyMistake, null)
})

test('/readyz reports an unlisted private proxy that forwards most of its requests, until ten minutes after the last', () => {
  const { callers, call, advance } = openCallers()
  call('10.0.0.1', FORWARDED_HEADERS, MIN_FORWARDED_REQUESTS - 1)
  assert.equal(callers.proxyMistake, null)
  call('10.0.0.1', FORWARDED_HEADERS)
  assert.match(callers.proxyMistake!, /KEYWAY_TRUSTED_PROXIES/)
  assert.doesNotMatch(callers.proxyMistake!, /10\.0|\d+\.\d+/)
  advance(600_000 - 1)
  assert.ok(callers.proxyMistake)
  advance(1)
  assert.equal(callers.proxyMistake, null)
})

test('a forwarding header that a client sends through a proxy that adds none causes no failed check', () => {
  const { callers, call } = openCallers()
  for (let n = 0; n < 100; n++) {
    call('127.0.0.1', FORWARDED_HEADERS)
    call('127.0.0.1')
  }
  assert.equal(callers.proxyMistake, null)
})

test('requests from public addresses do not evict counts of private proxies', () => {
  const { callers, call } = openCallers()
  call('10.0.0.1', FORWARDED_HEADERS, MIN_FORWARDED_REQUESTS)
  for (let n = 0; n < 1000; n++) call(`198.51.${n >> 8}.${n & 255}`, FORWARDED_HEADERS)
  assert.ok(callers.proxyMistake)
})

test('a peer without an address has the same limits as others', () => {
  const requestWithoutAddress = { socket: {}, headers: {} } as unknown as IncomingMessage
  assert.ok(proxiedCallers.of(requestWithoutAddress).network)
})

test('a request is local only from this machine, to a loopback name, and without a proxy', () => {
  const callers = createCallers({ trustedProxies: [], host: '127.0.0.1', log })
  assert.equal(callers.isLocal(requestFrom('127.0.0.1', { host: 'localhost:8080' })), true)
  assert.equal(callers.isLocal(requestFrom('::1', { host: '[::1]:8080' })), true)
  assert.equal(callers.isLocal(requestFrom('127.0.0.1', { host: 'evil.test' })), false)
  assert.equal(
    callers.isLocal(requestFrom('127.0.0.1', { host: 'localhost', 'x-forwarded-for': '1.1.1.1' })),
    false,
  )
  assert.equal(callers.isLocal(requestFrom('192.0.2.1', { host: 'localhost' })), false)
  // Proxies and tunnels add these headers, so a request with one of them does not count as local.
  for (const header of [
    'x-forwarded-host',
    'x-forwarded-proto',
    'x-forwarded-port',
    'forwarded',
    'via',
    'x-real-ip',
    'cf-connecting-ip',
    'true-client-ip',
    'x-original-host',
  ]) {
    assert.equal(
      callers.isLocal(requestFrom('127.0.0.1', { host: 'localhost', [header]: 'x' })),
      false,
      header,
    )
  }
  assert.equal(
    createCallers({ trustedProxies: [], host: '0.0.0.0', log }).isLocal(
      requestFrom('127.0.0.1', { host: 'localhost' }),
    ),
    false,
  )
})
