import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { tool } from '../../../tools/install.ts'

const HERE = import.meta.dirname

for (const file of ['agent.test.ts', 'client.test.ts', 'verify.test.ts', 'server.test.ts']) {
  test(`what ${file} promises holds on Bun as well`, { timeout: 180_000 }, async t => {
    const bun = await tool(t, 'bun')
    if (!bun) return
    const run = promisify(execFile)(bun, ['test', '--timeout', '30000', join(HERE, file)], { cwd: HERE })
    const { stderr } = await run.catch(error => assert.fail(`${error.stdout}\n${error.stderr}`))
    assert.match(stderr, /\b0 fail\b/)
  })
}
