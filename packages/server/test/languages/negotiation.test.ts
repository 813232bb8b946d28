import assert from 'node:assert/strict'
import { test } from 'node:test'
import { lookUp, negotiate, parseLocale } from '../../src/languages/negotiation.ts'

const HEADERS: [string | undefined, string | null][] = [
  [undefined, null],
  ['', null],
  ['*', null],
  ['de', 'de'],
  ['DE-at', 'de'],
  ['de-Latn-DE-1996', 'de'],
  ['en-GB,en;q=0.9,de;q=0.8', 'en'],
  ['fi, de;q=0.7, en;q=0.8', 'en'],
  ['fi-FI,fi;q=0.9', null],
  ['en;q=0.1,de;q=0.2', 'de'],
  ['en;q=0.5,de;q=0.5', 'en'],
  ['de;q=0,en;q=0.1', 'en'],
  ['de;q=0.000', null],
  ['de;q=1.000', 'de'],
  ['de ; q=0.9 , en ; q=0.8', 'de'],
  ['de;q=2', null],
  ['de;q=0.1234', null],
  ['de;q=', null],
  ['de;level=1', null],
  ['d€, en', 'en'],
  [',,;,de', 'de'],
  ['__proto__, constructor, toString, de', 'de'],
  [`${'fi,'.repeat(31)}de`, 'de'],
  [`${'fi,'.repeat(32)}de`, null],
  [`${'x'.repeat(1000)},de`, null],
]

test('the language that a browser wants most, of those that there are, is found by its header', () => {
  for (const [header, language] of HEADERS) assert.equal(negotiate(header), language, String(header))
})

test('a tag is looked up without its last parts', () => {
  assert.equal(lookUp('de-CH-1901'), 'de')
  assert.equal(lookUp('EN'), 'en')
  for (const unknown of ['', 'fi', 'd', 'german', 'i-klingon', 'x-de', 'constructor'])
    assert.equal(lookUp(unknown), null, unknown)
})

test('a tag is put into its canonical form, and a malformed one refused', () => {
  assert.equal(parseLocale('DE-at'), 'de-AT')
  assert.equal(parseLocale('zh-hant-tw'), 'zh-Hant-TW')
  assert.equal(parseLocale('iw'), 'he')
  for (const malformed of ['', 'd', 'de_AT', 'de-', '-de', 'de at', 'de\0', 'ä', 'x'.repeat(36), '{}'])
    assert.equal(parseLocale(malformed), null, malformed)
})
