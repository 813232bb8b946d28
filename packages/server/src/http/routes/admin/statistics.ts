import { z } from 'zod'
import { MAX_BUCKETS } from '../../../usage/range.ts'
import { prefers } from '../../accept.ts'
import { ok } from '../../answer.ts'
import type { HttpPorts } from '../../http-ports.ts'
import { type Route, route } from '../../route.ts'
import { statisticsCsv, statisticsObject } from '../../statistics-object.ts'
import { usageQuery } from '../usage.ts'
import { TAG } from './acting.ts'

const count = z.int()
const gauge = (description: string) => z.union([z.int(), z.null()]).meta({ description })

const bucket = z
  .strictObject({
    start: z.iso.datetime({ precision: 3 }),
    people: gauge(
      'Accounts that are not deleted: the highest of one count an hour; null where none was made.',
    ),
    live_agents: gauge('Connections to the hub on all nodes: the highest of one count a minute.'),
    sign_ups: count,
    sign_ins: count.meta({ description: 'By link or code.' }),
    exchanges: count,
    api_calls: count.meta({ description: 'Accepted calls on `/v1`.' }),
    mails_sent: count,
    mails_failed: count.meta({
      description: 'Failed for good, suppressed, or expired before they were sent.',
    }),
    errors: count.meta({ description: 'Answers with a status from 500 on.' }),
    refused: z.record(z.string(), count).meta({
      description:
        'Refused requests by error code, with known credentials or not; absent codes did not occur.',
    }),
  })
  .meta({ id: 'StatisticsBucket' })

const example = {
  start: '2026-11-20T00:00:00.000Z',
  people: 1024,
  live_agents: 310,
  sign_ups: 12,
  sign_ins: 96,
  exchanges: 8400,
  api_calls: 2300,
  mails_sent: 104,
  mails_failed: 1,
  errors: 0,
  refused: { invalid_api_key: 3 },
}

export function statisticsRoutes({ statistics }: Pick<HttpPorts, 'statistics'>): Route[] {
  return [
    route({
      method: 'GET',
      path: '/v1/admin/statistics',
      operation: 'getStatistics',
      tag: TAG,
      summary: 'What the whole service did, over time',
      description: `Every bucket of the range, oldest first, empty ones too; at most ${MAX_BUCKETS}. Hours and days are those of UTC. What happened in the last ten seconds may be missing. With \`Accept: text/csv\` the same as CSV, with the sum in \`refused\` and a column for each code.`,
      access: 'admin:read',
      query: usageQuery,
      answers: [
        {
          status: 200,
          description: 'The buckets.',
          schema: z.strictObject({ data: z.array(bucket) }),
          example: { data: [example] },
          also: { type: 'text/csv', example: statisticsCsv([{ ...example, start: 0 }]) },
        },
      ],
      errors: [],
      async handle({ query, incoming }) {
        const buckets = await statistics.report(query)
        if (!prefers(incoming, 'text/csv')) return ok({ data: buckets.map(statisticsObject) })
        const type = 'text/csv; charset=utf-8; header=present'
        return { status: 200, type, body: statisticsCsv(buckets) }
      },
    }),
  ]
}
