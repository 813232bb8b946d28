import { BY_COMMAND_LINE } from '../audit/audit.ts'
import { toRfc3339 } from '../clock.ts'
import { limitsObject } from '../http/limits-object.ts'
import { isUnlimited } from '../limits/limit.ts'
import { byOperator, REASON } from './by-operator.ts'
import type { Command } from './command.ts'
import { limitsOf } from './key-limits.ts'
import { keyJson } from './user-json.ts'

export const commands: Command[] = [
  {
    name: 'keys revoke',
    args: ['KEY_ID'],
    options: { reason: REASON },
    summary: 'Revoke an API key of any user.',
    help: `Permanent. No further exchange succeeds, and open connections of the key close with 4410, also on running servers.
KEY_ID is the id, not the key; "users show" lists the ids.`,
    async run(context) {
      const { apiKeys, clock } = await context.services()
      const key = await apiKeys.revokeById(context.args[0]!, byOperator(context.options.reason))
      context.print(keyJson(key, clock.now()), `Revoked ${key.keyPrefix}… (${key.id}).`)
      return 0
    },
  },
  {
    name: 'keys limit',
    args: ['KEY_ID'],
    options: {
      requests: {
        value: 'N/WINDOW,…',
        meaning: 'for example 10/second,1000/day (second, minute, hour, day)',
      },
      spend: { value: 'AMOUNT/PERIOD,…', meaning: 'for example 5.00/day,50.00/month (day, month, total)' },
      quota: { value: 'N', meaning: 'how many calls are left' },
      refill: { value: 'N/PERIOD', meaning: 'what the quota has again each hour, day or month (UTC)' },
      clear: { meaning: 'remove what was set' },
      reason: REASON,
    },
    summary: "Limit an API key, beyond its owner's own limits.",
    help: `Replaces what "keys limit" set before. The owner sees it as operator_limits and cannot change it; of it and the
owner's own limits the stricter counts. A rotation hands it on. KEY_ID is the id, not the key. Example:
  keyway keys limit 019aa2c4-7a10-7b3e-8c11-5f6e7d8c9b0a --requests 100/minute`,
    async run(context) {
      const newLimits = limitsOf(context.options)
      const { apiKeys, clock } = await context.services()
      const key = await apiKeys.setOperatorLimits(
        context.args[0]!,
        newLimits,
        byOperator(context.options.reason),
      )
      const limits = limitsObject(key.operatorLimits, await apiKeys.quotasLeft([key]))
      const text = `${key.keyPrefix}… (${key.id}): ${isUnlimited(newLimits) ? 'no limits' : JSON.stringify(limits)}`
      context.print({ ...keyJson(key, clock.now()), operator_limits: limits }, text)
      return 0
    },
  },
  {
    name: 'keys rotate-signing',
    args: [],
    summary: 'Rotate the key that signs tokens.',
    help: `The new key is published immediately, and signs once every verifier has fetched it; the old one stays published
until all tokens that it signed have expired. No session ends. The keys of other algorithms that apps use are rotated too.`,
    async run(context) {
      const { signingKeys } = await context.services()
      const { kid, keys, signsFrom } = await signingKeys.rotate(BY_COMMAND_LINE)
      const at = toRfc3339(signsFrom)
      const lines = keys.map(key => `The ${key.alg} key ${key.kid} is published, and signs from ${at}.`)
      context.print({ kid, keys, signs_from: at }, lines.join('\n'))
      return 0
    },
  },
]
