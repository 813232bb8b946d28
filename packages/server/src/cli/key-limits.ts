import { limits as limitsBody } from '../http/limits-object.ts'
import { NO_LIMITS, type WantedLimits } from '../limits/limit.ts'
import { OperatorError, UsageError } from '../operator-error.ts'
import type { Options } from './command.ts'

/** The limits that the options of `keys limit` name, by the rules of the HTTP API. @throws UsageError, OperatorError */
export function limitsOf({ clear, requests, spend, quota, refill }: Options): WantedLimits {
  const namesLimits = [requests, spend, quota, refill].some(option => option !== undefined)
  if (namesLimits === (clear === true))
    throw new UsageError('Say which limits, or --clear. See: keyway keys limit --help')
  if (clear) return NO_LIMITS
  const quotaBody = {
    ...(quota !== undefined && { remaining: parseWholeNumber(quota) }),
    ...(refill !== undefined && { refill: pairsOf(refill, 'amount', 'every', parseWholeNumber)[0] }),
  }
  const result = limitsBody.safeParse({
    ...(requests !== undefined && { requests: pairsOf(requests, 'limit', 'per', parseWholeNumber) }),
    ...(spend !== undefined && { spend: pairsOf(spend, 'amount', 'per', String) }),
    ...((quota ?? refill) !== undefined && { quota: quotaBody }),
  })
  if (result.success) return result.data
  const [issue] = result.error.issues
  throw new OperatorError(`--${issue!.path.map(String).join('.')} ${issue!.message}.`)
}

/** Parses `100/minute,1000/day` to one object for each pair; `amount` and `period` are the names of its members. */
function pairsOf(
  text: string | boolean,
  amount: string,
  period: string,
  parse: (text: string) => unknown,
): Record<string, unknown>[] {
  return String(text)
    .split(',')
    .map(pair => {
      const [first = '', second] = pair.trim().split('/')
      return { [amount]: parse(first), [period]: second }
    })
}

/** Parses a whole number. Returns any other text unchanged, so that the error can quote it. */
function parseWholeNumber(text: string | boolean): unknown {
  return /^\d+$/.test(String(text)) ? Number(text) : text
}
