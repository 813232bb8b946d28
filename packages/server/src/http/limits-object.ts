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

const AMOUNT = 'a positive decimal with at most 6 places, at most 1000000'

export const requests = atMostOneOf(
  REQUEST_WINDOWS,
  strict({ limit: from(1, MAX_REQUEST_LIMIT, 100), per: oneOf(REQUEST_WINDOWS, 'minute') }),
  '[{"limit": 100, "per": "minute"}]',
)
const spend = atMostOneOf(
  SPEND_PERIODS,
  strict({ amount: parsed(AMOUNT, '5.00', parseAmount), per: oneOf(SPEND_PERIODS, 'day') }),
  '[{"amount": "5.00", "per": "day"}]',
)
const quota = strict({
  remaining: optional(from(0, MAX_QUOTA, 1000)),
  refill: optional(strict({ amount: from(1, MAX_QUOTA, 1000), every: oneOf(REFILL_PERIODS, 'month') })),
}).refine(({ remaining, refill }) => remaining !== undefined || refill !== undefined, {
  error: 'must have remaining, refill or both, for example {"remaining": 1000}',
})

/** The limits of a key in a request body; an empty object means no limits. */
export const limits = strict({
  requests: optional(requests),
  spend: optional(spend),
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

/** @param left the remaining quotas, by their ids */
export function limitsObject(
  { requests, spend, quota }: Limits,
  left: ReadonlyMap<string, number>,
): KeyLimits {
  return {
    ...(requests.length > 0 && { requests: requests.map(({ limit, per }) => ({ limit, per })) }),
    ...(spend.length > 0 && {
      spend: spend.map(({ amount, per }) => ({ amount: formatMoney(amount), per })),
    }),
    ...(quota && {
      quota: { remaining: left.get(quota.id) ?? 0, ...(quota.refill && { refill: quota.refill }) },
    }),
  }
}

function from(least: number, most: number, example: number) {
  return wholeNumber(`a whole number from ${least} to ${most}`, example, least, most)
}

function oneOf<const Names extends readonly string[]>(names: Names, example: Names[number]) {
  return z.enum(names, { error: expected(`one of ${names.join(', ')}`, JSON.stringify(example)) })
}

/** In the order of the windows, so that equal limits are equal lists. */
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
