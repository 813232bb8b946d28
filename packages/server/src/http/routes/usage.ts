import type { IncomingMessage } from 'node:http'
import { z } from 'zod'
import { DEFAULT_BUCKETS, MAX_BUCKETS } from '../../usage/range.ts'
import { UNIT_LENGTHS, USAGE_KEPT_FOR, type UsageBucket } from '../../usage/usage.ts'
import { prefers } from '../accept.ts'
import { type Answer, ok } from '../answer.ts'
import { instant } from '../body-fields.ts'
import type { HttpPorts } from '../http-ports.ts'
import * as answers from '../openapi-schemas.ts'
import { type Route, route } from '../route.ts'
import { usageCsv, usageObject } from '../usage-object.ts'

const RETENTION_DAYS = {
  hour: USAGE_KEPT_FOR.hour / UNIT_LENGTHS.day,
  day: USAGE_KEPT_FOR.day / UNIT_LENGTHS.day,
}

export const usageQuery = z.object({
  bucket: z
    .enum(['hour', 'day'], { error: 'must be hour or day' })
    .optional()
    .meta({
      description: `\`day\` by default. Hours are kept for ${RETENTION_DAYS.hour} days, days for ${RETENTION_DAYS.day}.`,
    }),
  from: instant.optional().meta({
    description: `The first bucket is the one that contains it. By default ${DEFAULT_BUCKETS.hour} hours or ${DEFAULT_BUCKETS.day} days before \`to\`.`,
  }),
  to: instant.optional().meta({ description: 'Exclusive; now by default.' }),
})

export const USAGE_DESCRIPTION = `Every bucket of the range, oldest first, empty ones too, none after the present one; at most ${MAX_BUCKETS}. Hours and days are those of UTC. What happened in the last ten seconds may be missing. With \`Accept: text/csv\` the same as CSV, with the sum in \`refused\` and a column for each code.`
export const USAGE_ANSWER = {
  status: 200,
  description: 'The buckets.',
  schema: z.strictObject({ data: z.array(answers.usageBucket) }),
  example: { data: [answers.usageBucketExample] },
  also: { type: 'text/csv', example: answers.usageCsvExample },
} as const
const TAG = 'Usage'

export function usageRoutes({ apiKeys, usage }: Pick<HttpPorts, 'apiKeys' | 'usage'>): Route[] {
  return [
    route({
      method: 'GET',
      path: '/v1/api-keys/{key_id}/usage',
      operation: 'getApiKeyUsage',
      tag: TAG,
      summary: 'What a key was used for',
      description: USAGE_DESCRIPTION,
      access: 'keys:read',
      query: usageQuery,
      answers: [USAGE_ANSWER],
      errors: [],
      async handle({ principal, params, query, incoming }) {
        const { id } = await apiKeys.get(principal.userId, params.key_id)
        return usageAnswer(await usage.ofKey(principal.userId, id, query), incoming)
      },
    }),
    route({
      method: 'GET',
      path: '/v1/usage',
      operation: 'getUsage',
      tag: TAG,
      summary: 'What you used, with all keys and without',
      description: `${USAGE_DESCRIPTION} Deleted keys count too, and calls with an access token.`,
      access: 'keys:read',
      query: usageQuery,
      answers: [USAGE_ANSWER],
      errors: [],
      async handle({ principal, query, incoming }) {
        return usageAnswer(await usage.ofUser(principal.userId, query), incoming)
      },
    }),
  ]
}

export function usageAnswer(buckets: readonly UsageBucket[], incoming: IncomingMessage): Answer {
  if (!prefers(incoming, 'text/csv')) return ok({ data: buckets.map(usageObject) })
  return { status: 200, type: 'text/csv; charset=utf-8; header=present', body: usageCsv(buckets) }
}
