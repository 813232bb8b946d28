import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MINUTE } from '../../src/clock.ts'
import { createKnownNetworks, MAX_NETWORKS_OF_AN_ACCOUNT } from '../../src/known-networks.ts'
import { createTestClock } from '../support/clock.ts'

test('a network is known from its first use on, and no longer an hour after the last one', () => {
  const clock = createTestClock()
  const networks = createKnownNetworks(clock)
  assert.equal(networks.isKnown('203.0.113.7'), false)
  networks.noteUse('ann', '203.0.113.7')
  for (let use = 0; use < 20; use++) {
    assert.equal(networks.isKnown('203.0.113.7'), true)
    clock.advance(15 * MINUTE)
    networks.noteUse('ann', '203.0.113.7')
  }
  clock.advance(29 * MINUTE)
  assert.equal(networks.isKnown('203.0.113.7'), true)
  clock.advance(31 * MINUTE)
  assert.equal(networks.isKnown('203.0.113.7'), false)
})

test('one account makes few networks known', () => {
  const networks = createKnownNetworks(createTestClock())
  for (let n = 0; n < 1000; n++) networks.noteUse('mallory', `198.51.100.${n}`)
  networks.noteUse('ann', '203.0.113.7')
  const knownAddresses = Array.from({ length: 1000 }, (_, n) => `198.51.100.${n}`).filter(networks.isKnown)
  assert.equal(knownAddresses.length, MAX_NETWORKS_OF_AN_ACCOUNT)
  assert.equal(networks.isKnown('203.0.113.7'), true)
})

test('memory of known networks is bounded', () => {
  const networks = createKnownNetworks(createTestClock())
  const allNetworks = Array.from({ length: 60_000 }, (_, n) => `network-${n}`)
  for (const [n, network] of allNetworks.entries()) networks.noteUse(`account-${n}`, network)
  assert.equal(allNetworks.filter(networks.isKnown).length, 50_000)
})
