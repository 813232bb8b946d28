import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  canonicalAddress,
  isLoopback,
  isLoopbackHost,
  networkMatcher,
  networkOf,
  parseCidr,
} from '../../src/network.ts'

test('an address has one canonical spelling', () => {
  const spellings: [string, string | null][] = [
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::FFFF:c000:0201', '192.0.2.1'],
    ['0:0:0:0:0:ffff:192.0.2.1', '192.0.2.1'],
    ['2001:DB8:0:0:0:0:0:1', '2001:db8::1'],
    ['2001:0db8::0001', '2001:db8::1'],
    ['fe80::1%eth0', 'fe80::1'],
    ['::', '::'],
    ['::1', '::1'],
    ['192.0.2.01', null],
    ['192.0.2', null],
    ['0x7f.0.0.1', null],
    ['192.0.2.256', null],
    ['localhost', null],
    ['', null],
    [' 192.0.2.1', null],
    ['[::1]', null],
  ]
  for (const [text, canonical] of spellings) assert.equal(canonicalAddress(text), canonical, text)
})

test('the canonical spelling of an address is its own canonical spelling', () => {
  fc.assert(
    fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), text => {
      const canonical = canonicalAddress(text)
      assert.ok(canonical)
      assert.equal(canonicalAddress(canonical), canonical)
    }),
  )
})

test('limits count an IPv4 address alone and an IPv6 address by its /64', () => {
  assert.equal(networkOf('192.0.2.1'), '192.0.2.1')
  assert.equal(networkOf('2001:db8:1:2:3:4:5:6'), '2001:db8:1:2::/64')
  assert.equal(networkOf('2001:db8:1:2::'), networkOf('2001:db8:1:2:ffff:ffff:ffff:ffff'))
  assert.notEqual(networkOf('2001:db8:1:2::1'), networkOf('2001:db8:1:3::1'))
  assert.equal(networkOf('::1'), '::/64')
})

test('a network is stored in canonical spelling, and an address is a network of one', () => {
  assert.equal(parseCidr('10.0.0.0/8'), '10.0.0.0/8')
  assert.equal(parseCidr('192.0.2.1'), '192.0.2.1/32')
  assert.equal(parseCidr('2001:DB8:0::/32'), '2001:db8::/32')
  assert.equal(parseCidr('::1'), '::1/128')
  assert.equal(parseCidr('0.0.0.0/0'), '0.0.0.0/0')
  assert.equal(parseCidr('::/0'), '::/0')
})

test('a network with host bits, a wrong prefix or a zone is refused', () => {
  for (const text of [
    '10.0.0.1/8',
    '10.0.0.0/33',
    '10.0.0.0/',
    '10.0.0.0/08',
    '10.0.0.0/-1',
    '10.0.0.0/8/8',
    '10.0.0.0/8 ',
    '10.0.0.0/1e1',
    '2001:db8::1/64',
    '2001:db8::/129',
    'fe80::%eth0/64',
    '/8',
    '',
    'example.com/24',
  ]) {
    assert.equal(parseCidr(text), null, text)
  }
})

test('an address matches exactly the networks that contain it', () => {
  const matches = networkMatcher(['10.0.0.0/8', '2001:db8::/32', '192.0.2.7/32'])
  for (const inside of ['10.0.0.0', '10.255.255.255', '2001:db8::1', '192.0.2.7'])
    assert.ok(matches(inside), inside)
  for (const outside of ['9.255.255.255', '11.0.0.0', '2001:db9::', '192.0.2.8', '::1', '', 'x']) {
    assert.ok(!matches(outside), outside)
  }
})

test('an empty list matches nothing, and an invalid network is ignored', () => {
  assert.ok(!networkMatcher([])('10.0.0.1'))
  assert.ok(networkMatcher(['nonsense', '10.0.0.0/8'])('10.0.0.1'))
})

test('127.0.0.0/8, ::1 and localhost are loopback', () => {
  for (const address of ['127.0.0.1', '127.255.255.255', '::1']) assert.ok(isLoopback(address), address)
  for (const address of ['128.0.0.1', '0.0.0.0', '::', '10.0.0.1']) assert.ok(!isLoopback(address), address)
  for (const host of ['localhost', 'LOCALHOST', 'a.localhost', '127.0.0.1', '[::1]'])
    assert.ok(isLoopbackHost(host))
  for (const host of ['localhost.example.com', 'notlocalhost', 'example.com', ''])
    assert.ok(!isLoopbackHost(host))
})
