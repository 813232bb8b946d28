import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { formatMoney, MAX_AMOUNT, parseAmount, TRIAL_CREDIT } from '../../src/billing/money.ts'

test('the trial credit is formatted as 2.00', () => {
  assert.equal(formatMoney(TRIAL_CREDIT), '2.00')
})

test('money is formatted with 2 to 6 places, and negative amounts with a sign', () => {
  const formattedAmounts: [number, string][] = [
    [0, '0.00'],
    [1, '0.000001'],
    [10, '0.00001'],
    [100, '0.0001'],
    [1_000, '0.001'],
    [10_000, '0.01'],
    [100_000, '0.10'],
    [1_234_567, '1.234567'],
    [-500_000, '-0.50'],
    [-1, '-0.000001'],
    [MAX_AMOUNT, '1000000.00'],
  ]
  for (const [amount, text] of formattedAmounts) assert.equal(formatMoney(amount), text)
})

test('an amount is a positive decimal with at most 6 places', () => {
  assert.equal(parseAmount('0.000001'), 1)
  assert.equal(parseAmount('2'), 2_000_000)
  assert.equal(parseAmount('0.1'), 100_000)
  assert.equal(parseAmount('1000000'), MAX_AMOUNT)
  const refusedTexts = [
    '',
    '0',
    '0.00',
    '-1',
    '+1',
    '.5',
    '1.',
    '01',
    '1e3',
    '1,5',
    ' 1',
    '1 ',
    '1.0000001',
    '0x1',
  ]
  for (const text of [...refusedTexts, '1000000.000001', '9999999', 'NaN', 'Infinity', '\u0661', '1\n']) {
    assert.equal(parseAmount(text), null, JSON.stringify(text))
  }
})

test('a formatted amount is parsed as the same amount', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: MAX_AMOUNT }), amount => {
      assert.equal(parseAmount(formatMoney(amount)), amount)
    }),
  )
})
