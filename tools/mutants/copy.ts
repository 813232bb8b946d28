import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join, relative } from 'node:path'

const TREE = join(import.meta.dirname, '../..')
const ORIGINAL_TREE_VARIABLE = 'KEYWAY_ORIGINAL_TREE'
const NOT_COPIED = new Set(['node_modules', '.git', '.tmp', '.installing', 'results', 'screenshots', 'data'])

/** The original tree, in which results are stored. */
export const ORIGINAL_TREE = process.env[ORIGINAL_TREE_VARIABLE] ?? TREE

/**
 * Continues in a copy of the tree, so that the tree may change meanwhile: runs the same program there with the same
 * arguments, and exits with it. Returns only in the copy.
 */
export async function continueInCopy(program: string): Promise<void> {
  if (process.env[ORIGINAL_TREE_VARIABLE] !== undefined) return
  const copy = mkdtempSync(join(tmpdir(), 'keyway-tree-'))
  cpSync(TREE, copy, { recursive: true, filter: path => !NOT_COPIED.has(basename(path)) })
  for (const folder of ['', 'tools', 'packages/server'])
    symlinkSync(join(TREE, folder, 'node_modules'), join(copy, folder, 'node_modules'))
  const child = spawn(
    process.execPath,
    ['--no-warnings', join(copy, relative(TREE, program)), ...process.argv.slice(2)],
    { cwd: copy, stdio: 'inherit', env: { ...process.env, [ORIGINAL_TREE_VARIABLE]: TREE } },
  )
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal))
  const [status] = await once(child, 'exit')
  rmSync(copy, { recursive: true, force: true, maxRetries: 3 })
  process.exit(status ?? 1)
}
