import type { TestContext } from 'node:test'
import { freePort } from './free-port.ts'
import { NODE_SETTINGS, type PrintedLinks } from './nodes.ts'
import { type ServedProcess, serve } from './serve.ts'

export interface NodeProcess {
  origin: string
  served: ServedProcess
}

/** Starts a node as a process, killed after the test. `links` gets the sign-in links that it prints. */
export async function startNodeProcess(
  t: TestContext,
  settings: Record<string, string>,
  links: PrintedLinks,
): Promise<NodeProcess> {
  const port = settings.KEYWAY_PORT ?? String(await freePort())
  const servedProcess = await serve({ ...NODE_SETTINGS, ...settings, KEYWAY_PORT: port })
  t.after(() => servedProcess.end('SIGKILL').catch(() => {}))
  let readLength = 0
  const outputPoll = setInterval(() => {
    const lines = servedProcess.output().slice(readLength).split('\n')
    readLength = servedProcess.output().length - lines.pop()!.length
    for (const line of lines) if (line.startsWith('Sign-in link')) links.announce(line)
  }, 20)
  t.after(() => clearInterval(outputPoll))
  return { origin: `http://127.0.0.1:${port}`, served: servedProcess }
}
