import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { promisify } from 'node:util'
import { tool } from '../../../tools/install.ts'
import { patienceMs } from '../../server/test/support/patience.ts'

const HERE = import.meta.dirname
/** Bun runs at most three tests at once, as Node does here, since each test starts a service. */
const CONCURRENCY_OPTIONS = ['--concurrent', '--max-concurrency=3']

describe('the SDK on Bun', { concurrency: true }, () => {
  for (const file of ['agent.test.ts', 'client.test.ts', 'verify.test.ts', 'server.test.ts']) {
    test(`${file} passes on Bun`, async t => {
      const bun = await tool(t, 'bun')
      if (!bun) return
      const options = [
        '--timeout',
        String(patienceMs(60_000)),
        ...(file === 'server.test.ts' ? CONCURRENCY_OPTIONS : []),
      ]
      const run = promisify(execFile)(bun, ['test', ...options, join(HERE, file)], { cwd: HERE })
      const { stderr } = await run.catch(error => assert.fail(`${error.stdout}\n${error.stderr}`))
      assert.match(stderr, /\b0 fail\b/)
    })
  }
})
