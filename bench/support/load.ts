import { once } from 'node:events'
import type { LoadJob, LoadResult } from './load-protocol.ts'
import { cpuSeconds, LOAD_CORE, spawnPinned } from './machine.ts'

export interface Load extends AsyncDisposable {
  /** Runs a job against a listening process, or several that share a port. @throws Error if an answer is not 2xx */
  run(job: LoadJob, pids: number | readonly number[]): Promise<Measurement>
}

export interface Measurement extends LoadResult {
  perSecond: number
  /** Processor time of the measured processes per answer, in microseconds. */
  cpuMicroseconds: number
}

/** Starts the load generator as a process on another core than the server. */
export async function startLoad(): Promise<Load> {
  const program = new URL('./load-generator.ts', import.meta.url).pathname
  const child = spawnPinned(LOAD_CORE, [program], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  await once(child, 'spawn')
  return {
    async run(job, pids) {
      const processorTime = () => [pids].flat().reduce((sum, pid) => sum + cpuSeconds(pid), 0)
      child.send(job)
      await once(child, 'message')
      const secondsBefore = processorTime()
      const [result] = (await once(child, 'message')) as [LoadResult]
      const usedSeconds = processorTime() - secondsBefore
      if (result.failed > 0 || result.answered === 0) {
        throw new Error(`${result.failed} requests failed, ${result.answered} succeeded: ${result.failure}`)
      }
      return {
        ...result,
        perSecond: result.answered / result.seconds,
        cpuMicroseconds: (usedSeconds * 1e6) / result.answered,
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
