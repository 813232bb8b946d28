import type { KeyLimits } from '@keyway/sdk/protocol'
import { z } from 'zod'
import { formatMoney, parseAmount } from '../billing/money.ts'
import {
  type Limits,
  MAX_QUOTA,
  MAX_REQUEST_LIMIT,
  REFILL_PERIODS,
  REQUEST_WINDOWS,
  SPEND_PERIODS,
  type WantedLimits,
} from '../limits/limit.ts'
import { expected, optional, parsed, strict, wholeNumber } from './body-fields.ts'

const AMOUNT_RULE = 'a positive decimal with at most 6 places, at most 1000000'

export const requestLimits = atMostOneOf(
  REQUEST_WINDOWS,
  strict({ limit: wholeNumberBetween(1, MAX_REQUEST_LIMIT, 100), per: oneOf(REQUEST_WINDOWS, 'minute') }),
  '[{"limit": 100, "per": "minute"}]',
)
const spendLimits = atMostOneOf(
  SPEND_PERIODS,
  strict({ amount: parsed(AMOUNT_RULE, '5.00', parseAmount), per: oneOf(SPEND_PERIODS, 'day') }),
  '[{"amount": "5.00", "per": "day"}]',
)
const quota = strict({
  remaining: optional(wholeNumberBetween(0, MAX_QUOTA, 1000)),
  refill: optional(
    strict({ amount: wholeNumberBetween(1, MAX_QUOTA, 1000), every: oneOf(REFILL_PERIODS, 'month') }),
  ),
}).refine(({ remaining, refill }) => remaining !== undefined || refill !== undefined, {
  error: 'must have remaining, refill or both, for example {"remaining": 1000}',
})

/** The limits of a key in a request body; an empty object means no limits. */
export const limits = strict({
  requests: optional(requestLimits),
  spend: optional(spendLimits),
  quota: optional(quota),
})
  .transform(
    (sent): WantedLimits => ({
      requests: sent.requests ?? [],
      spend: sent.spend ?? [],
      quota: sent.quota
        ? { remaining: sent.quota.remaining ?? null, refill: sent.quota.refill ?? null }
        : null,
    }),
  )
  .meta({
    description:
      'Sliding windows of requests (exchanges, API calls, `consume`), spend per calendar day or month (UTC) or in total, and a quota for `consume`. A quota without `remaining` keeps what is left, or begins with what a refill brings.',
    examples: [{ requests: [{ limit: 100, per: 'minute' }], spend: [{ amount: '5.00', per: 'day' }] }],
  })

/** @param remainingQuotas in calls, by quota id */
export function limitsObject(
  { requests, spend, quota }: Limits,
  remainingQuotas: ReadonlyMap<string, number>,
): KeyLimits {
  return {
    ...(requests.length > 0 && { requests: requests.map(({ limit, per }) => ({ limit, per })) }),
    ...(spend.length > 0 && {
      spend: spend.map(({ amount, per }) => ({ amount: formatMoney(amount), per })),
    }),
    ...(quota && {
      quota: { remaining: remainingQuotas.get(quota.id) ?? 0, ...(quota.refill && { refill: quota.refill }) },
    }),
  }
}

function wholeNumberBetween(min: number, max: number, example: number) {
  return wholeNumber(`a whole number from ${min} to ${max}`, example, min, max)
}

function oneOf<const Names extends readonly string[]>(names: Names, example: Names[number]) {
  return z.enum(names, { error: expected(`one of ${names.join(', ')}`, JSON.stringify(example)) })
}

/**
 * A list with at most one entry for each name, sorted in the order of the names, so that equal limits are equal lists.
 */
function atMostOneOf<Entry extends z.ZodType<{ per: string }>>(
  names: readonly string[],
  entry: Entry,
  example: string,
) {
  return z
    .array(entry, { error: expected('a list', example) })
    .max(names.length, { error: `must have at most one entry per ${names.join(', ')}` })
    .refine(list => new Set(list.map(({ per }) => per)).size === list.length, {
      error: `must have at most one entry per ${names.join(', ')}`,
    })
    .transform(list => list.toSorted((left, right) => names.indexOf(left.per) - names.indexOf(right.per)))
}
