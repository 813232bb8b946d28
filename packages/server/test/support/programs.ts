import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { TestContext } from 'node:test'

export interface RunningProgram {
  output(): string
  stop(): Promise<void>
}

/** Starts a program, and resolves when its output matches `ready`. It is stopped after the test. */
export async function startProgram(
  t: TestContext,
  [program, ...args]: [string, ...string[]],
  env: Record<string, string>,
  ready: RegExp,
): Promise<RunningProgram> {
  const child = spawn(program, args, { env: { ...process.env, ...env } })
  let output = ''
  const runningProgram = { output: () => output, stop: () => endProcess(child) }
  t.after(runningProgram.stop)
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
  return runningProgram
}

async function endProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  await exited
}
