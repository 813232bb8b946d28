import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, type TestContext, test } from 'node:test'
import { buildBinary } from '../../../../tools/binary/build.ts'
import { packWheel } from '../../../python/pack.ts'
import { packSdk } from '../../../sdk/pack.ts'
import { root } from '../structure/source.ts'
import type { CommandResult } from '../support/command-line.ts'
import { postgresMissing } from '../support/engines.ts'
import { freePort } from '../support/free-port.ts'
import { closeCode, createJourney } from '../support/journey.ts'
import { createEmptyDatabase } from '../support/postgres.ts'
import { type ServedProcess, serveBy } from '../support/serve.ts'

/*
 * Tests the single executable as on a machine without Node: it runs in an empty working directory, with an environment
 * that contains only settings.
 */

const folder = mkdtempSync(join(tmpdir(), 'keyway-binary-'))
const buildFolder = join(folder, 'built')
const KEYWAY = join(buildFolder, 'keyway')

before(() => buildBinary(buildFolder))
after(() => rmSync(folder, { recursive: true, force: true }))

async function emptyMachine(t: TestContext) {
  const cwd = mkdtempSync(join(folder, 'machine-'))
  const env = { KEYWAY_PORT: String(await freePort()) }
  return {
    cwd,
    async serve(settings: Record<string, string> = {}): Promise<ServedProcess> {
      const servedProcess = await serveBy(KEYWAY, ['serve'], { cwd, env: { ...env, ...settings } })
      t.after(() => servedProcess.end('SIGTERM'))
      return servedProcess
    },
    run: (words: string[], settings: Record<string, string> = {}) =>
      new Promise<CommandResult>(resolve =>
        execFile(KEYWAY, words, { cwd, env: { ...env, ...settings } }, (error, out, err) =>
          resolve({ status: error ? Number(error.code) : 0, out, err }),
        ),
      ),
  }
}

describe('the single executable', () => {
  test('has the same bytes in a second build, and the checksums that the build lists', async () => {
    const secondBuildFolder = join(folder, 'again')
    await buildBinary(secondBuildFolder)
    const checksums = readFileSync(join(secondBuildFolder, 'SHA256SUMS'), 'utf8')
    assert.equal(checksums, readFileSync(join(buildFolder, 'SHA256SUMS'), 'utf8'))
    for (const name of ['keyway', 'keyway.cdx.json', 'keyway.licences.txt']) {
      const hash = createHash('sha256').update(readFileSync(join(secondBuildFolder, name)))
      assert.ok(checksums.includes(`${hash.digest('hex')}  ${name}\n`), name)
    }
  })

  test('lists its components as CycloneDX, each package with its hash', () => {
    const document = JSON.parse(readFileSync(join(buildFolder, 'keyway.cdx.json'), 'utf8'))
    assert.equal(document.bomFormat, 'CycloneDX')
    const components: { name: string; version: string; hashes?: unknown[] }[] = document.components
    const { dependencies } = JSON.parse(readFileSync(join(root, 'packages/server/package.json'), 'utf8'))
    const packages = Object.entries({ ...dependencies, 'Node.js': process.versions.node })
    for (const [name, version] of packages.filter(([name]) => !name.startsWith('@keyway/'))) {
      const component = components.find(each => each.name === name && each.version === version)
      assert.ok(component?.hashes?.length, `${name} ${version}`)
    }
  })

  test('comes with the licence of each component', () => {
    const { components } = JSON.parse(readFileSync(join(buildFolder, 'keyway.cdx.json'), 'utf8'))
    const texts = readFileSync(join(buildFolder, 'keyway.licences.txt'), 'utf8').split(/^==== (.+) ====$/m)
    for (const { name, version } of components) {
      const text = texts[texts.indexOf(`${name} ${version}`) + 1]
      assert.match(text!, /copyright/i, `${name} ${version}`)
    }
  })

  test('signs in, creates a key and connects to the hub, and closes the connection when the key is revoked', async t => {
    const machine = await emptyMachine(t)
    const { url } = await machine.serve()
    const journey = createJourney(url)
    await journey.sendLink('ada@example.com')
    const signIn = await journey.verify('ada@example.com', await journey.readToken('ada@example.com'))
    const { id, key } = await journey.createKey(signIn.access_token, 'robot')
    const socket = await journey.connect(await journey.exchange(key))
    const closed = closeCode(socket)
    await journey.revoke(signIn.access_token, id)
    assert.equal(await closed, 4410)

    const inbox = await machine.run(['inbox', '--json'])
    assert.equal(inbox.status, 0, inbox.err)
    assert.match(inbox.out, /ada@example\.com/)
    const doctor = await machine.run(['doctor'], { KEYWAY_PUBLIC_URL: url })
    assert.equal(doctor.status, 0, doctor.out + doctor.err)
  })

  test('signs with the addon that it contains, which leaves no file behind', {
    skip: process.platform !== 'linux',
  }, async t => {
    const machine = await emptyMachine(t)
    const { pid } = await machine.serve({ TMPDIR: machine.cwd })
    const memoryMaps = readFileSync(`/proc/${pid}/maps`, 'utf8')
    assert.match(memoryMaps, /r-xp .*\/keyway-[0-9a-f-]{36} \(deleted\)$/m)
  })

  test('serves the pages, documents and packages of the checkout', async t => {
    const { url } = await (await emptyMachine(t)).serve()
    const readBody = async (path: string, language = 'en') => {
      const response = await fetch(url + path, { headers: { 'accept-language': language, accept: '*/*' } })
      assert.equal(response.status, 200, path)
      return Buffer.from(await response.arrayBuffer())
    }
    // `deepEqual` is avoided here: its report of a difference between archives exhausts the memory.
    assert.ok((await readBody('/sdk.tgz')).equals((await packSdk(url)).content), '/sdk.tgz')
    assert.ok((await readBody('/sdk.whl')).equals((await packWheel()).content), '/sdk.whl')
    assert.match(String(await readBody('/docs/quickstart')), /<h1[^>]*>/)
    const page = String(await readBody('/sign-in', 'ja'))
    assert.match(page, /[ぁ-ん]/)
    assert.doesNotMatch(page, /\\u[0-9a-f]{4}/)
    for (const [, path] of page.matchAll(/(?:href|src)="(\/assets\/[^"]+)"/g)) await readBody(path!)
  })

  test('reads the operator’s texts, and says what is wrong with them', async t => {
    const machine = await emptyMachine(t)
    mkdirSync(join(machine.cwd, 'texts'))
    writeFileSync(join(machine.cwd, 'texts/en.json'), '{"no such": "text"}')
    const { status, err } = await machine.run(['check-config'], { KEYWAY_TEXTS: 'texts' })
    assert.equal(status, 78)
    assert.match(err, /no such/)
  })

  test('exits with the status of the command', async t => {
    const { run } = await emptyMachine(t)
    assert.equal((await run(['--version'])).status, 0)
    assert.equal((await run(['no-such-command'])).status, 64)
    assert.equal((await run(['serve'], { KEYWAY_PORT: 'none' })).status, 78)
    assert.equal((await run(['migrate'])).status, 0)
    const { status, err } = await run(['users', 'show', 'nobody@example.com'])
    assert.equal(status, 1)
    assert.match(err, /no such account/)
  })

  test('serves with several processes', {
    skip: postgresMissing() || process.platform !== 'linux',
  }, async t => {
    const database = await createEmptyDatabase()
    t.after(() => database.drop())
    const machine = await emptyMachine(t)
    const settings = {
      KEYWAY_DATABASE_URL: database.url,
      KEYWAY_SECRET: 'a'.repeat(64),
      KEYWAY_PROCESSES: '2',
    }
    const { url, pid } = await machine.serve(settings)
    assert.equal((await fetch(`${url}/readyz`)).status, 200)
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    assert.equal(children.trim().split(' ').length, 2)
  })
})
