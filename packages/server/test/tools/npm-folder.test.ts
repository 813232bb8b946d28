import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, type TestContext, test } from 'node:test'

const NPM_FOLDER = join(import.meta.dirname, '../../../../tools/npm-folder.ts')
/** Padding that makes unpacking slow, so that a process could read an incomplete file. */
const PADDING = `# ${randomBytes(6_000_000).toString('base64')}\n`
/** Prints `whole` only if the file is complete, and cannot be started while the file is being written. */
const PROGRAM = `#!/bin/sh\n${PADDING}echo whole\n`

/** The program of each process: installs like a test, and then runs the package's program. */
const CLIENT = `
  import { spawnSync } from 'node:child_process'
  import { installOnce } from ${JSON.stringify(NPM_FOLDER)}
  const isInstalled = await installOnce('.')
  const result = isInstalled && spawnSync('./node_modules/program/program', { encoding: 'utf8' })
  console.log(isInstalled ? result.error?.code ?? result.stdout.trim() : 'nothing')
`
/** Runs the program as soon as the packages seem to be installed, without the lock. */
const WATCHER = `
  import { spawnSync } from 'node:child_process'
  import { isInstalled } from ${JSON.stringify(NPM_FOLDER)}
  while (!isInstalled('.')) await new Promise(done => setTimeout(done, 1))
  const result = spawnSync('./node_modules/program/program', { encoding: 'utf8' })
  console.log(result.error?.code ?? result.stdout.trim())
`

describe('packages needed by several processes', () => {
  test('are installed by one of twelve processes, and all run a complete program', async t => {
    const { folder, downloads } = await npmFolder(t, (tarball, response) => response.end(tarball))
    const programs = [...Array(10).fill(CLIENT), WATCHER, WATCHER]
    const outputs = await Promise.all(programs.map(program => output(startProgram(t, folder, program))))
    assert.deepEqual(outputs, Array(12).fill('whole'))
    assert.equal(downloads(), 1)
  })

  test('are installed by another process if the installing one is killed', async t => {
    const installerKilled = Promise.withResolvers<void>()
    const downloadRequested = Promise.withResolvers<void>()
    const { folder } = await npmFolder(t, (tarball, response) => {
      downloadRequested.resolve()
      void installerKilled.promise.then(() => response.end(tarball))
    })
    const installer = startProgram(t, folder, CLIENT)
    await downloadRequested.promise
    const waitingProcesses = [1, 2, 3].map(() => startProgram(t, folder, CLIENT))
    installer.kill('SIGKILL')
    await once(installer, 'exit')
    installerKilled.resolve() // the npm of the killed process continues, concurrently with that of its successor
    assert.deepEqual(await Promise.all(waitingProcesses.map(output)), Array(3).fill('whole'))
  })

  test('are not retried by processes that waited for a failed installation, but by the next one', async t => {
    const answerReleased = Promise.withResolvers<void>()
    const { folder, downloads } = await npmFolder(t, async (_, response) => {
      await answerReleased.promise
      response.writeHead(404).end()
    })
    const failingInstaller = startProgram(t, folder, CLIENT)
    const waiters = [1, 2, 3].map(() => startProgram(t, folder, `console.error('started')\n${CLIENT}`))
    await Promise.all(waiters.map(child => once(child.stderr!, 'data')))
    answerReleased.resolve()
    assert.deepEqual(await Promise.all([failingInstaller, ...waiters].map(output)), Array(4).fill('nothing'))
    const downloadsBefore = downloads()
    assert.equal(await output(startProgram(t, folder, CLIENT)), 'nothing')
    assert.equal(downloads(), downloadsBefore * 2)
  })

  test('are installed again when the lock file has another version', async t => {
    const { folder } = await npmFolder(t, (tarball, response) => response.end(tarball))
    assert.equal(await output(startProgram(t, folder, CLIENT)), 'whole')
    const installedLock = join(folder, 'node_modules/.package-lock.json')
    writeFileSync(installedLock, readFileSync(installedLock, 'utf8').replace('"1.0.0"', '"0.9.0"'))
    writeFileSync(join(folder, 'node_modules/program/program'), '#!/bin/sh\necho old\n')
    assert.equal(await output(startProgram(t, folder, CLIENT)), 'whole')
  })

  test('leave no staging folder behind', async t => {
    const { folder } = await npmFolder(t, (tarball, response) => response.end(tarball))
    mkdirSync(join(folder, '.installing-killed'))
    mkdirSync(join(folder, 'node_modules')) // incomplete, as after a killed npm
    assert.equal(await output(startProgram(t, folder, CLIENT)), 'whole')
    assert.deepEqual(
      readdirSync(folder).filter(name => name.startsWith('.installing')),
      [],
    )
  })
})

/** Creates a folder whose `package-lock.json` lists one package, with PROGRAM in it. `answer` serves its tarball. */
async function npmFolder(t: TestContext, answer: (tarball: Buffer, response: ServerResponse) => unknown) {
  const folder = mkdtempSync(join(tmpdir(), 'keyway-npm-'))
  t.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }))
  const tarball = packProgram(join(folder, 'pack'))
  let count = 0
  const server = createServer((_, response) => {
    count++
    answer(tarball, response)
  }).listen(0, '127.0.0.1')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  await once(server, 'listening')
  const tarballUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/program.tgz`
  const root = { name: 'root', version: '0.0.0', dependencies: { program: tarballUrl } }
  const packages = { '': root, 'node_modules/program': { version: '1.0.0', resolved: tarballUrl } }
  const packageLock = { name: 'root', version: '0.0.0', lockfileVersion: 3, requires: true, packages }
  writeFileSync(join(folder, 'package.json'), JSON.stringify(root))
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(packageLock))
  writeFileSync(join(folder, '.npmrc'), `cache=${join(folder, 'cache')}\nfund=false\naudit=false\n`)
  return { folder, downloads: () => count }
}

function packProgram(packFolder: string): Buffer {
  mkdirSync(join(packFolder, 'package'), { recursive: true })
  writeFileSync(
    join(packFolder, 'package/package.json'),
    JSON.stringify({ name: 'program', version: '1.0.0' }),
  )
  writeFileSync(join(packFolder, 'package/program'), PROGRAM)
  chmodSync(join(packFolder, 'package/program'), 0o755)
  execFileSync('tar', ['czf', 'program.tgz', 'package'], { cwd: packFolder })
  return readFileSync(join(packFolder, 'program.tgz'))
}

function startProgram(t: TestContext, folder: string, program: string): ChildProcess {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], { cwd: folder })
  t.after(() => child.kill('SIGKILL'))
  return child
}

async function output(child: ChildProcess): Promise<string> {
  return (await text(child.stdout!)).trim()
}
