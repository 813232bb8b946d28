import { parseRfc3339 } from '../clock.ts'
import { usageCsv, usageObject } from '../http/usage-object.ts'
import { parseId } from '../ids.ts'
import { OperatorError } from '../operator-error.ts'
import type { Services } from '../services.ts'
import { MAX_BUCKETS, type ReportRequest } from '../usage/range.ts'
import type { UsageBucket } from '../usage/usage.ts'
import { type Command, type CommandContext, table } from './command.ts'

export const commands: Command[] = [
  {
    name: 'usage',
    args: ['WHO'],
    options: {
      bucket: { value: 'UNIT', meaning: 'hour or day (day)' },
      from: {
        value: 'INSTANT',
        meaning: 'where to begin, for example 2026-11-01T00:00:00Z (30 days, 24 hours ago)',
      },
      to: { value: 'INSTANT', meaning: 'where to end (now)' },
      csv: { meaning: 'CSV with all columns instead of a table' },
    },
    summary: 'Show what a person or a key was used for.',
    help: `WHO is a user's id or e-mail address, or a key's id. Days are kept for 400 days, hours for 90, both in UTC; at most
${MAX_BUCKETS} buckets at once. The table leaves out empty ones. What happened in the last ten seconds may be missing.`,
    async run(context) {
      const services = await context.services()
      const buckets = await reportOf(services, context.args[0]!, reportRange(context))
      const text = context.options.csv ? usageCsv(buckets).trimEnd() : tableOf(buckets)
      context.print({ data: buckets.map(usageObject) }, text)
      return 0
    },
  },
]

async function reportOf(
  { usage, users, storage }: Services,
  who: string,
  range: ReportRequest,
): Promise<UsageBucket[]> {
  const id = parseId(who)
  const [key] = id ? await storage.store.apiKeys.findMany([id]) : []
  if (key) return usage.ofKey(key.userId, key.id, range)
  return usage.ofUser((await users.find(who)).id, range)
}

function reportRange({ options: { bucket, from, to } }: CommandContext): ReportRequest {
  if (bucket !== undefined && bucket !== 'hour' && bucket !== 'day')
    throw new OperatorError(`--bucket must be hour or day, not "${bucket}".`)
  return { bucket, from: instantOf('from', from), to: instantOf('to', to) }
}

function instantOf(name: string, text: string | boolean | undefined): number | undefined {
  if (text === undefined) return undefined
  const instant = parseRfc3339(String(text))
  if (instant === null)
    throw new OperatorError(`--${name} must be an instant with a zone, for example 2026-11-01T00:00:00Z.`)
  return instant
}

function tableOf(buckets: readonly UsageBucket[]): string {
  const rows = buckets.map(usageObject).filter(bucket => Object.values(bucket).some(isNonZero))
  if (rows.length === 0) return 'Nothing was used in this time.'
  return table(
    [
      'START',
      'EXCHANGES',
      'API CALLS',
      'INTROSPECTIONS',
      'REFUSED',
      'CONNECTIONS',
      'SECONDS',
      'SENT',
      'RECEIVED',
      'CHARGED',
    ],
    rows.map(row => [
      row.start,
      ...[row.exchanges, row.api_calls, row.introspections].map(String),
      Object.entries(row.refused)
        .map(([code, count]) => `${count} ${code}`)
        .join(', ') || '0',
      ...[row.connections, row.connected_seconds, row.messages_sent, row.messages_received].map(String),
      row.charged,
    ]),
  )
}

/**
 * Whether a bucket's value is a count or an amount above zero, or an object (`refused`) with members. A bucket without
 * such a value is not shown.
 */
function isNonZero(value: unknown): boolean {
  if (typeof value === 'number') return value > 0
  if (typeof value === 'object' && value !== null) return Object.keys(value).length > 0
  return typeof value === 'string' && Number(value) > 0
}
