import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { environment } from '../support/serve.ts'

const RUN_SCRIPT = fileURLToPath(new URL('./run.ts', import.meta.url))

describe('the simulation', () => {
  test('finds no violation in its first runs, and repeats one exactly, whatever ran before', async () => {
    const [first, repeated] = await Promise.all([
      simulate('--seeds', '2', '--hashes'),
      simulate('--seed', '2'),
    ])
    assert.match(first.output, /2 seeds from 1: 0 violations/)
    assert.equal(first.status, 0)
    const [hash] = /seed 2: [0-9a-f]{16}/.exec(repeated.output) ?? []
    assert.ok(hash && first.output.includes(hash), `${hash} is not in\n${first.output}`)
  })

  test('finds a link that is read and then written', async () => {
    const { status, output } = await simulate('--broken', 'link-read-then-write')
    assert.match(output, /VIOLATION seed \d+: .*the use of a link was undone or changed/)
    assert.equal(status, 0)
  })
})

/** Runs the simulation in a process of its own, whose time and randomness are simulated. */
async function simulate(...args: string[]): Promise<{ status: number; output: string }> {
  const env = { ...environment({}), NODE_OPTIONS: '', NODE_TEST_CONTEXT: undefined }
  const child = spawn(process.execPath, [RUN_SCRIPT, ...args], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  const exited = new Promise<number>(resolve => child.once('exit', code => resolve(code ?? 1)))
  return { output: await text(child.stdout), status: await exited }
}
