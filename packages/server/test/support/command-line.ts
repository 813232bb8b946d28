import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { run } from '../../src/cli.ts'
import { loadConfig } from '../../src/config.ts'
import { environment, launcher } from './serve.ts'

export interface CommandResult {
  status: number
  out: string
  err: string
}

/**
 * Runs `keyway` with these arguments and settings in this process, since a start of Node takes longer than most
 * commands.
 */
export async function keyway(settings: Record<string, string>, ...args: string[]): Promise<CommandResult> {
  const outputLines: string[] = []
  const errorLines: string[] = []
  const status = await run(args, {
    loadConfig: () => loadConfig(environment(settings)),
    print: text => void outputLines.push(`${text}\n`),
    printError: text => void errorLines.push(`${text}\n`),
  })
  return { status, out: outputLines.join(''), err: errorLines.join('') }
}

export function keywayProcess(settings: Record<string, string>, ...args: string[]): Promise<CommandResult> {
  return new Promise(resolve =>
    execFile(process.execPath, [launcher, ...args], { env: environment(settings) }, (error, out, err) =>
      resolve({ status: error ? Number(error.code) : 0, out, err }),
    ),
  )
}

export async function outputOf(running: Promise<CommandResult>): Promise<string> {
  const { status, out, err } = await running
  assert.equal(status, 0, err)
  return out
}
