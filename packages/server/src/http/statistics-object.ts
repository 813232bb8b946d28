import { toRfc3339 } from '../clock.ts'
import { GAUGES, type StatisticBucket, TOTALS } from '../statistics/statistic.ts'

/** The JSON form of a bucket; gauges that were not measured are null. */
export function statisticsObject({ start, ...values }: StatisticBucket) {
  return { start: toRfc3339(start), ...values }
}

/**
 * CSV (RFC 4180) with one record per bucket: its start, its gauges and totals, the number of all refused requests, and
 * a column `refused_…` for each error code that occurs. All cells are numbers, times or empty, so that none needs
 * quotes or could be read as a formula by a spreadsheet.
 */
export function statisticsCsv(buckets: readonly StatisticBucket[]): string {
  const codes = [...new Set(buckets.flatMap(({ refused }) => Object.keys(refused)))].sort()
  const names = [...GAUGES, ...TOTALS] as const
  const head = ['start', ...names, 'refused', ...codes.map(code => `refused_${code}`)]
  const lines = buckets.map(bucket => [
    toRfc3339(bucket.start),
    ...names.map(name => bucket[name] ?? ''),
    Object.values(bucket.refused).reduce((sum, count) => sum + count, 0),
    ...codes.map(code => bucket.refused[code] ?? 0),
  ])
  return [...[head, ...lines].map(cells => cells.join(',')), ''].join('\r\n')
}
