import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { test } from 'node:test'
import { tool } from '../../../../tools/install.ts'
import { root } from './source.ts'

function check(...files: string[]): { status: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', 'tools/regular-expressions.ts', ...files],
    { cwd: root, encoding: 'utf8', timeout: 240_000 },
  )
  return { status, output: stdout + stderr }
}

test('every regular expression of the server and the SDK is linear', async t => {
  if (!(await tool(t, 'recheck'))) return
  const { status, output } = check()
  assert.equal(status, 0, output)
})

test('quadratic patterns and patterns built at run time are found', async t => {
  if (!(await tool(t, 'recheck'))) return
  const folder = mkdtempSync(join(tmpdir(), 'keyway-patterns-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'patterns.ts')
  writeFileSync(
    file,
    'export const jwt: RegExp = /eyJ[\\w-]+\\.eyJ/i\nexport const made = new RegExp(process.argv[2])\n',
  )
  const { status, output } = check(relative(root, file))
  assert.equal(status, 1)
  assert.match(output, /patterns\.ts:1: \/eyJ.* is 2nd degree polynomial/)
  assert.match(output, /patterns\.ts:2: a pattern that is put together at run time/)
})
