import { setTimeout as wait } from 'node:timers/promises'
import { pinBench } from './support/machine.ts'
import { type Row, report } from './support/report.ts'
import { startMailbox } from './support/soak/mailbox.ts'
import { createRecorder, type Recorder } from './support/soak/recorder.ts'
import { targetsOf, writePage } from './support/soak/report.ts'
import { type SoakEngine, startService } from './support/soak/service.ts'
import { TLS_PROXIES, type TlsProxy } from './support/soak/tls.ts'
import { type SoakWork, startWork } from './support/soak/work.ts'

/**
 * A soak test: hours of mixed work at a fixed rate (sign-ins, refreshes, exchanges, introspections, charges, agents,
 * pages, lists of administrators). No call may fail, and nothing but stored data may grow.
 *
 * Options: `--minutes N` (30), `--engine sqlite|postgres` (both, one after the other), `--rate N` (1; 2 is twice the
 * load), `--tls node|caddy` (plain HTTP).
 */

const MINUTE_MS = 60_000
const SAMPLES = 120
const MIN_INTERVAL_MS = 5_000

const minutes = Number(option('minutes') ?? 30)
const rate = Number(option('rate') ?? 1)
const tls = option('tls') === undefined ? null : TLS_PROXIES.find(proxy => proxy === option('tls'))
if (tls === undefined) throw new Error(`--tls ${TLS_PROXIES.join('|')}`)
const engines = (option('engine')?.split(',') ?? ['sqlite', 'postgres']) as SoakEngine[]

pinBench()
for (const engine of engines) await soak(engine, tls)

async function soak(engine: SoakEngine, tls: TlsProxy | null): Promise<void> {
  const name = ['soak', engine, ...(tls ? [tls] : [])].join('-')
  const mailbox = await startMailbox()
  try {
    await using service = await startService(engine, mailbox, tls)
    const recorder = createRecorder()
    const work = await startWork(service, mailbox, recorder)
    console.log(`\n${service.description}: ${minutes} minutes`)
    await Promise.all([...loopsOf(work, recorder), recordIntervals(service, recorder)])
    work.close()
    const targets = targetsOf(recorder)
    report(name, { [service.description]: rowsOf(recorder) }, targets)
    for (const error of recorder.errors) console.log(error)
    console.log(
      `\nCharts: ${writePage(name, `Soak: ${service.description}, ${minutes} minutes`, recorder, targets)}`,
    )
    if (targets.some(({ reached }) => !reached)) process.exitCode = 1
  } finally {
    mailbox.close()
  }
}

/** Starts each operation at a fixed rate (open loop), even while earlier ones are still running. */
function loopsOf({ perSecond, run }: SoakWork, recorder: Recorder): Promise<void>[] {
  return Object.entries(perSecond).map(async ([operation, operationRate]) => {
    const startedAt = performance.now()
    const runningOperations = new Set<Promise<void>>()
    for (let n = 0; n < minutes * 60 * operationRate * rate; n++) {
      const msUntilStart = startedAt + (n * 1000) / (operationRate * rate) - performance.now()
      if (msUntilStart > 0) await wait(msUntilStart)
      const operationRun = recorder
        .measure(operation, () => run(operation, n))
        .finally(() => runningOperations.delete(operationRun))
      runningOperations.add(operationRun)
    }
    await Promise.all(runningOperations)
  })
}

async function recordIntervals(
  service: { sizes(): Promise<Record<string, number>> },
  recorder: Recorder,
): Promise<void> {
  const intervalMs = Math.max(MIN_INTERVAL_MS, (minutes * MINUTE_MS) / SAMPLES)
  const startedAt = performance.now()
  for (let endMs = intervalMs; endMs <= minutes * MINUTE_MS; endMs += intervalMs) {
    await wait(Math.max(0, startedAt + endMs - performance.now()))
    recorder.endInterval(endMs / MINUTE_MS, await service.sizes())
    const errors = [...recorder.totals.values()].reduce((sum, total) => sum + total.errors, 0)
    if (process.stdout.isTTY)
      process.stdout.write(`\r${(endMs / MINUTE_MS).toFixed(1)} min, ${errors} errors `)
  }
}

function rowsOf({ totals }: Recorder): Row[] {
  return [...totals].map(([operation, { count, errors, latencies }]) => ({
    '': operation,
    count,
    errors,
    'p50 ms': latencies.p50,
    'p99 ms': latencies.p99,
    'p99.9 ms': latencies.p999,
  }))
}

function option(name: string): string | undefined {
  const at = process.argv.indexOf(`--${name}`)
  return at < 0 ? undefined : process.argv[at + 1]
}
