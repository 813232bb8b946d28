import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { machineName } from '../machine.ts'
import type { Target } from '../report.ts'
import { median } from '../statistics.ts'
import { chart, escapeHtml, numberText } from './chart.ts'
import type { Interval, Recorder } from './recorder.ts'

const RESULTS = join(import.meta.dirname, '..', '..', 'results')
/** Maximum growth of a size that should be constant, from the second fifth of the run to the last. */
const MAX_GROWTH = 1.15
/** Sizes that should be constant under a constant load. The heap is not, between two collections. */
const CONSTANT_SIZES = /resident memory|open files|active resources|connections to/

/** The targets of the report: no errors, and no growth of sizes that should be constant. */
export function targetsOf(recorder: Recorder): Target[] {
  const errors = [...recorder.totals.values()].reduce((sum, total) => sum + total.errors, 0)
  const names = Object.keys(recorder.intervals[0]?.sizes ?? {}).filter(name => CONSTANT_SIZES.test(name))
  return [
    { what: 'errors', wanted: '0', measured: String(errors), reached: errors === 0 },
    ...names.map(name => {
      const growth = growthOf(recorder.intervals, name)
      return {
        what: `${name}: the last fifth of the run, of the second`,
        wanted: `≤ ${MAX_GROWTH}`,
        measured: growth.toFixed(2),
        reached: growth <= MAX_GROWTH,
      }
    }),
  ]
}

function growthOf(intervals: readonly Interval[], name: string): number {
  const values = intervals.map(({ sizes }) => sizes[name]!)
  const fifthLength = Math.max(1, Math.floor(values.length / 5))
  return median(values.slice(-fifthLength)) / median(values.slice(fifthLength, 2 * fifthLength))
}

/** Writes the charts as a page; returns the path of its file. */
export function writePage(name: string, title: string, recorder: Recorder, targets: Target[]): string {
  const { intervals, errors } = recorder
  const operations = [...recorder.totals.keys()].filter(each =>
    intervals.some(({ operations }) => operations[each]),
  )
  const sizes = Object.keys(intervals[0]?.sizes ?? {})
  const page = `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escapeHtml(title)}</title>
<style>
:root { color-scheme: light dark; font: 14px/1.5 system-ui; }
body { max-width: 84rem; margin: 2rem auto; padding: 0 1rem; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(24rem, 1fr)); gap: 1rem; }
figure { margin: 0; } svg { width: 100%; } text { fill: currentColor; font-size: 11px; }
td, th { text-align: right; padding: 0 .8rem 0 0; } td:first-child, th:first-child { text-align: left; }
</style>
<h1>${escapeHtml(title)}</h1>
<p>${escapeHtml(machineName())}, ${new Date().toISOString()}</p>
<h2>Targets</h2>
<table><tr><th>What<th>Wanted<th>Measurement<th></tr>
${targets.map(each => `<tr><td>${escapeHtml(each.what)}<td>${each.wanted}<td>${each.measured}<td>${each.reached ? 'ok' : 'NOT REACHED'}</tr>`).join('\n')}
</table>
<h2>Operations</h2>
<table><tr><th>Operation<th>Count<th>Errors<th>p50 ms<th>p99 ms<th>p99.9 ms</tr>
${[...recorder.totals]
  .map(
    ([operation, { count, errors, latencies }]) =>
      `<tr><td>${escapeHtml(operation)}<td>${count}<td>${errors}<td>${numberText(latencies.p50)}<td>${numberText(latencies.p99)}<td>${numberText(latencies.p999)}</tr>`,
  )
  .join('\n')}
</table>
${errors.length > 0 ? `<h2>The first errors</h2><pre>${escapeHtml(errors.join('\n'))}</pre>` : ''}
<h2>Sizes</h2>
<div class="charts">${sizes.map(size => chart(size, [{ name: '', points: pointsOf(intervals, at => at.sizes[size]!) }])).join('\n')}</div>
<h2>Latencies, ms</h2>
<div class="charts">${operations
    .map(operation =>
      chart(
        operation,
        (['p50', 'p99', 'p999'] as const).map(quantile => ({
          name: quantile === 'p999' ? 'p99.9' : quantile,
          points: pointsOf(intervals, at => at.operations[operation]?.[quantile] ?? Number.NaN),
        })),
      ),
    )
    .join('\n')}</div>
`
  mkdirSync(RESULTS, { recursive: true })
  const file = join(RESULTS, `${name}.html`)
  writeFileSync(file, page)
  return file
}

function pointsOf(intervals: readonly Interval[], value: (interval: Interval) => number) {
  return intervals.map(interval => ({ minute: interval.minute, value: value(interval) }))
}
