import type { UsageBucketObject } from '@keyway/sdk/protocol'
import { formatMoney } from '../billing/money.ts'
import { SECOND, toRfc3339 } from '../clock.ts'
import type { UsageBucket } from '../usage/usage.ts'

/** The JSON form of a bucket. Amounts are decimal strings, seconds are whole numbers. */
export function usageObject(bucket: UsageBucket): UsageBucketObject {
  return {
    start: toRfc3339(bucket.start),
    exchanges: bucket.exchanges,
    api_calls: bucket.apiCalls,
    introspections: bucket.introspections,
    refused: { ...bucket.refused },
    connections: bucket.connections,
    connected_seconds: Math.floor(bucket.connectedMs / SECOND),
    messages_sent: bucket.messagesSent,
    messages_received: bucket.messagesReceived,
    charged: formatMoney(bucket.charged),
  }
}

/**
 * CSV (RFC 4180) with one record per bucket: the fields of the object, with the sum in `refused`, then a column
 * `refused_…` for each error code that occurs. All cells are numbers, times or fixed names, so that none needs quotes
 * or could be read as a formula by a spreadsheet.
 */
export function usageCsv(buckets: readonly UsageBucket[]): string {
  const codes = [...new Set(buckets.flatMap(bucket => Object.keys(bucket.refused)))].sort()
  const records = buckets.map(bucket => {
    const { refused, ...object } = usageObject(bucket)
    const sum = Object.values(refused).reduce((total, count) => total + count, 0)
    return {
      ...object,
      refused: sum,
      ...Object.fromEntries(codes.map(code => [`refused_${code}`, refused[code] ?? 0])),
    }
  })
  const names = [...CSV_COLUMNS, ...codes.map(code => `refused_${code}`)]
  const lines = records.map(record => names.map(name => record[name as keyof typeof record]).join(','))
  return [names.join(','), ...lines, ''].join('\r\n')
}

const CSV_COLUMNS = [
  'start',
  'exchanges',
  'api_calls',
  'introspections',
  'refused',
  'connections',
  'connected_seconds',
  'messages_sent',
  'messages_received',
  'charged',
] as const satisfies readonly (keyof UsageBucketObject)[]
