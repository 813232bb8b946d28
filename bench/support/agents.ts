import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { AgentsJob, AgentsResult } from './hub-agents.ts'
import { LOAD_CORE, spawnPinned } from './machine.ts'

/** Starts the agents (hub-agents.ts) as a process on another core than the server. */
export async function startAgents() {
  const program = fileURLToPath(new URL('./hub-agents.ts', import.meta.url))
  const child = spawnPinned(LOAD_CORE, [program], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  await once(child, 'spawn')
  return {
    async run(job: AgentsJob): Promise<AgentsResult> {
      child.send(job)
      const [result] = await once(child, 'message')
      return result as AgentsResult
    },
    /** Starts a job whose result is not needed. */
    async start(job: AgentsJob): Promise<void> {
      child.send(job)
    },
    async [Symbol.asyncDispose]() {
      child.kill()
    },
  }
}
