import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import fc from 'fast-check'
import { HOUR } from '../../src/clock.ts'
import {
  CODE_WINDOW,
  codeNetworks,
  codesRefusedUntil,
  WRONG_CODES_PER_MAILBOX,
  WRONG_CODES_PER_NETWORK,
  WRONG_CODES_RECOGNISED,
  WRONG_CODES_UNRECOGNISED,
  type WrongCode,
} from '../../src/magic-links/code-limits.ts'
import { generateCode, LOGIN_CODE_DIGITS } from '../../src/magic-links/login-code.ts'

const SECURITY_DOCUMENT = readFileSync(new URL('../../../../SECURITY.md', import.meta.url), 'utf8').replace(
  /\s+/g,
  ' ',
)
const DAYS_A_YEAR = 366
const POSSIBLE_CODES = 10 ** LOGIN_CODE_DIGITS

/** The probability that at least one of these guesses, each of a different code, is right. */
function chanceOf(guesses: number): number {
  return -Math.expm1(guesses * Math.log1p(-1 / POSSIBLE_CODES))
}

test('the strongest attack on codes takes over one account a year with a probability of at most 1 in 10,000', () => {
  const windowsAYear = (DAYS_A_YEAR * 24 * HOUR) / CODE_WINDOW
  const unrecognisedGuesses = WRONG_CODES_UNRECOGNISED * windowsAYear
  const allGuesses = unrecognisedGuesses + WRONG_CODES_RECOGNISED * windowsAYear
  assert.ok(chanceOf(allGuesses) <= 1 / 10_000)
  for (const guesses of [unrecognisedGuesses, allGuesses]) {
    assert.ok(SECURITY_DOCUMENT.includes(guesses.toLocaleString('en')), `${guesses} guesses`)
    const odds = `1 in ${Math.floor(1 / chanceOf(guesses)).toLocaleString('en')}`
    assert.ok(SECURITY_DOCUMENT.includes(odds), odds)
  }
  const rows = [
    ['for one mailbox (`a+x@` counts as `a@`)', WRONG_CODES_PER_MAILBOX],
    ['from one IPv4 address or IPv6 /64', WRONG_CODES_PER_NETWORK[0]!.limit],
    ['from one IPv4 /24 or IPv6 /56', WRONG_CODES_PER_NETWORK[1]!.limit],
    ['from one IPv6 /48', WRONG_CODES_PER_NETWORK[2]!.limit],
    ['from unrecognised browsers, over all addresses and networks', WRONG_CODES_UNRECOGNISED],
  ]
  for (const [what, limit] of rows)
    assert.ok(SECURITY_DOCUMENT.includes(`| ${what} | ${limit} |`), String(what))
})

test('no choice of networks, addresses and times gets more codes of unknown browsers checked in any 24 hours', () => {
  const attempt = fc.record({
    wait: fc.constantFrom(0, 1, 1000, HOUR, 7 * HOUR, CODE_WINDOW / 2, CODE_WINDOW - 1, CODE_WINDOW),
    mailbox: fc.nat(50).map(String),
    address: fc.nat(0xffffff).map(host => `10.${host >> 16}.${(host >> 8) & 255}.${host & 255}`),
  })
  fc.assert(
    fc.property(fc.array(attempt, { minLength: 60, maxLength: 120, size: 'max' }), attempts => {
      const wrongCodes: WrongCode[] = []
      let now = 0
      for (const { wait, mailbox, address } of attempts) {
        now += wait
        const countedCodes = wrongCodes.filter(({ at }) => at > now - CODE_WINDOW)
        const guess = { mailbox, isReturning: false, networks: codeNetworks(address) }
        const refusedUntil = codesRefusedUntil(guess, countedCodes)
        if (refusedUntil !== null) assert.ok(refusedUntil > now)
        else wrongCodes.push({ id: String(wrongCodes.length), linkId: mailbox, at: now, ...guess })
      }
      for (const { at: start } of wrongCodes) {
        const codesOfTheDay = wrongCodes.filter(({ at }) => at >= start && at < start + CODE_WINDOW)
        assert.ok(codesOfTheDay.length <= WRONG_CODES_UNRECOGNISED)
        for (const { mailbox } of codesOfTheDay)
          assert.ok(codesOfTheDay.filter(one => one.mailbox === mailbox).length <= WRONG_CODES_PER_MAILBOX)
      }
    }),
  )
})

test('codes are refused until enough wrong codes of every exceeded limit have left the window, in whatever order they are listed', () => {
  const wrongCode = (at: number, mailbox: string): WrongCode => {
    return { id: `${at} ${mailbox}`, linkId: mailbox, at, mailbox, isReturning: false, networks: [] }
  }
  const attempt = { mailbox: 'ann', isReturning: false, networks: [] }
  const ofMailbox = Array.from({ length: WRONG_CODES_PER_MAILBOX }, (_, n) => wrongCode(1000 + n, 'ann'))
  const ofOthers = Array.from({ length: WRONG_CODES_UNRECOGNISED - ofMailbox.length }, (_, n) =>
    wrongCode(n, 'eve'),
  )
  assert.equal(codesRefusedUntil(attempt, ofMailbox.slice(1)), null)
  assert.equal(codesRefusedUntil(attempt, ofMailbox.toReversed()), 1000 + CODE_WINDOW)
  assert.equal(codesRefusedUntil({ ...attempt, mailbox: 'bob' }, [...ofMailbox, ...ofOthers]), CODE_WINDOW)
  for (const wrongCodes of [
    [...ofOthers, ...ofMailbox],
    [...ofMailbox, ...ofOthers],
  ])
    assert.equal(codesRefusedUntil(attempt, wrongCodes), 1000 + CODE_WINDOW)
})

test('the networks of a client are the IPv4 address and its /24, or the IPv6 /64, /56 and /48', () => {
  assert.deepEqual(codeNetworks('192.0.2.7'), ['192.0.2.7/32', '192.0.2.0/24'])
  assert.deepEqual(codeNetworks('2001:db8:1:2ff::7'), [
    '2001:db8:1:2ff::/64',
    '2001:db8:1:200::/56',
    '2001:db8:1::/48',
  ])
})

test('codes of eight digits are uniformly distributed', () => {
  const counts = Array.from({ length: 10 }, () => 0)
  const CODES_DRAWN = 20_000
  for (let draw = 0; draw < CODES_DRAWN; draw++) for (const digit of generateCode()) counts[Number(digit)]!++
  const expected = (CODES_DRAWN * LOGIN_CODE_DIGITS) / 10
  for (const count of counts) assert.ok(Math.abs(count - expected) < 6 * Math.sqrt(expected), counts.join())
})
