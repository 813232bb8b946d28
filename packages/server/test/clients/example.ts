import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { installOnce } from '../../../../tools/npm-folder.ts'
import { MUST_HAVE_ALL } from '../support/missing-servers.ts'

export const EXAMPLES = join(import.meta.dirname, '../../../../examples')

/** Installs the packages of an example. False when that failed and the test was skipped. */
export async function installExample(t: TestContext, name: string): Promise<boolean> {
  if (await installOnce(join(EXAMPLES, name))) return true
  if (MUST_HAVE_ALL) throw new Error(`npm ci failed in examples/${name}`)
  t.skip(`the packages of examples/${name} cannot be had here`)
  return false
}

export interface Running {
  output(): string
  stop(): Promise<void>
}

/** Starts a program, and resolves when it says `ready`. It is stopped after the test. */
export async function startProgram(
  t: TestContext,
  [program, ...words]: [string, ...string[]],
  env: Record<string, string>,
  ready: RegExp,
): Promise<Running> {
  const child = spawn(program, words, { env: { ...process.env, ...env } })
  let output = ''
  const running = { output: () => output, stop: () => end(child) }
  t.after(running.stop)
  await new Promise<void>((resolve, reject) => {
    const collect = (chunk: Buffer) => {
      output += chunk
      if (ready.test(output)) resolve()
    }
    child.stdout.on('data', collect)
    child.stderr.on('data', collect)
    child.once('error', reject)
    child.once('exit', status => reject(new Error(`${program} ended with ${status}:\n${output}`)))
  })
  return running
}

/** Starts `examples/NAME/FILE` with this Node. */
export function startExample(
  t: TestContext,
  [name, file]: [string, string],
  env: Record<string, string>,
): Promise<Running> {
  return startProgram(t, [process.execPath, join(EXAMPLES, name, file)], env, /Listening on/)
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  await exited
}
