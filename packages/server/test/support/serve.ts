import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { RunningServer } from '../../src/server.ts'
import { quickFolder } from './quick-folder.ts'

export const launcher = fileURLToPath(new URL('../../bin/keyway.js', import.meta.url))

export interface ServedProcess {
  url: string
  pid: number
  /** Time from the start of the process to its ready line, in milliseconds. */
  readyAfter: number
  /** The output so far. */
  output(): string
  /** Resolves with the exit status, or the name of the signal that ended the process. */
  readonly exited: Promise<number | string>
  /** Sends the signal and resolves like `exited`. */
  end(signal: 'SIGTERM' | 'SIGINT' | 'SIGKILL'): Promise<number | string>
}

/** Runs `keyway serve` in a process of its own with these settings only, and waits for its ready line. */
export function serve(settings: Record<string, string> = {}, program = launcher): Promise<ServedProcess> {
  return serveBy(process.execPath, [program, 'serve'], { env: environment(settings) })
}

/** Runs a command that starts the server, and waits for its ready line. */
export async function serveBy(
  command: string,
  args: string[],
  options: { env: NodeJS.ProcessEnv; cwd?: string },
): Promise<ServedProcess> {
  const startedAt = performance.now()
  const child = spawn(command, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
  const exited = new Promise<number | string>(resolve =>
    child.once('exit', (code, by) => resolve(code ?? by!)),
  )
  let output = ''
  const collect = (chunk: Buffer) => {
    output += chunk
  }
  child.stdout.on('data', collect)
  child.stderr.on('data', collect)
  const url = await readyUrl(child, () => output)
  return {
    url,
    pid: child.pid!,
    readyAfter: performance.now() - startedAt,
    output: () => output,
    exited,
    async end(signal) {
      child.kill(signal)
      return exited
    },
  }
}

/** Closes a server after its test, without the time that draining gives connected agents. */
export async function closeAtOnce(server: RunningServer): Promise<void> {
  if (!server.hub.health().draining) await server.hub.stop()
  await server.close()
}

/** The environment without settings of the service, plus the given ones, so that tests do not depend on the machine. */
export function environment(settings: Record<string, string>): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !name.startsWith('KEYWAY_') && name !== 'PORT',
  )
  return { ...Object.fromEntries(inherited), ...settings }
}

function readyUrl(child: ChildProcess, output: () => string): Promise<string> {
  return new Promise((resolve, reject) => {
    const checkOutput = () => {
      // The second form is that of older programs, which the tests of upgrades run.
      const ready = /"url":"([^"]+)","msg":"Keyway is ready"|Keyway is ready on (\S+)/.exec(output())
      if (ready) resolve((ready[1] ?? ready[2])!)
    }
    child.stdout!.on('data', checkOutput)
    child.once('error', reject)
    child.once('exit', code => reject(new Error(`keyway serve ended with ${code}:\n${output()}`)))
  })
}

export function temporaryFolder(): { path: string; remove(): void } {
  const path = mkdtempSync(join(quickFolder(), 'keyway-'))
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) }
}
