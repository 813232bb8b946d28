import { once } from 'node:events'
import type { LoadJob, LoadResult } from './load-protocol.ts'
import { cpuSeconds, LOAD_CORE, mainThreadCpuSeconds, spawnPinned } from './machine.ts'

export interface Load extends AsyncDisposable {
  /** Runs a job against a process, or several on one port. @throws Error if an answer is not 2xx, or none came */
  run(job: LoadJob, pids: number | readonly number[]): Promise<Measurement>
}

export interface Measurement extends LoadResult {
  perSecond: number
  /** Processor time of the measured processes per answer, in microseconds. */
  cpuMicroseconds: number
  /** The part of `cpuMicroseconds` that event loops used. It limits the throughput of the service. */
  eventLoopMicroseconds: number
}

/** Starts the load generator as a process on another core than the server. */
export async function startLoad(): Promise<Load> {
  const program = new URL('./load-generator.ts', import.meta.url).pathname
  const child = spawnPinned(LOAD_CORE, [program], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  await once(child, 'spawn')
  return {
    async run(job, pids) {
      const sumOf = (seconds: (pid: number) => number) =>
        [pids].flat().reduce((sum, pid) => sum + seconds(pid), 0)
      child.send(job)
      await once(child, 'message')
      const cpuSecondsBefore = { all: sumOf(cpuSeconds), eventLoop: sumOf(mainThreadCpuSeconds) }
      const [result] = (await once(child, 'message')) as [LoadResult]
      const usedCpuSeconds = sumOf(cpuSeconds) - cpuSecondsBefore.all
      const eventLoopSeconds = sumOf(mainThreadCpuSeconds) - cpuSecondsBefore.eventLoop
      if (result.failed > 0 || result.answered === 0) {
        throw new Error(`${result.failed} requests failed, ${result.answered} succeeded: ${result.failure}`)
      }
      return {
        ...result,
        perSecond: result.answered / result.seconds,
        cpuMicroseconds: (usedCpuSeconds * 1e6) / result.answered,
        eventLoopMicroseconds: (eventLoopSeconds * 1e6) / result.answered,
      }
    },
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null) return
      const exited = once(child, 'exit')
      child.kill()
      await exited
    },
  }
}
