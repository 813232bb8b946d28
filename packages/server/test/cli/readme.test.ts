import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { root } from '../structure/source.ts'
import { freePort } from '../support/free-port.ts'
import { serve, temporaryFolder } from '../support/serve.ts'

test('the first five minutes of the README work as printed', async t => {
  const folder = temporaryFolder()
  t.after(folder.remove)
  const port = await freePort()
  const server = await serve({ KEYWAY_DATA_DIR: join(folder.path, 'data'), KEYWAY_PORT: String(port) })
  t.after(() => server.end('SIGTERM'))

  const commands = await readmeCommands()
  const script = commands.replace('http://localhost:8080', server.url)
  const { code, stdout, stderr } = await run(`set -e\n${script}`)
  assert.equal(code, 0, stdout + stderr)
  assert.match(stdout, /"status": ?"sent"/)
  assert.match(stdout, /"amount": ?"2\.00"/)
  assert.match(stdout, /"expires_in": ?900/)
  assert.match(stdout, /"status": ?"revoked"/)
})

async function readmeCommands(): Promise<string> {
  const readme = await readFile(join(root, 'README.md'), 'utf8')
  const chapter = /## The first five minutes\n([\s\S]*?)\n## /.exec(readme)![1]!
  return [...chapter.matchAll(/```sh\n([\s\S]*?)```/g)].map(block => block[1]).join('\n')
}

function run(script: string): Promise<{ code: number; stdout: string; stderr: string }> {
  return new Promise(resolve =>
    execFile('sh', ['-c', script], (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
    ),
  )
}
