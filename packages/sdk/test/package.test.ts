import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { tool } from '../../../tools/install.ts'
import { until } from '../../server/test/support/patience.ts'
import { buildSdk } from '../build.ts'
import { packSdk } from '../pack.ts'
import { Agent } from '../src/agent.ts'
import { startKeyway } from './support/keyway-server.ts'
import { problem, startProtocolServer, TEST_KEY } from './support/protocol-server.ts'

const run = promisify(execFile)
/** How long npx may take to unpack and start a program. */
const NPX_TIMEOUT_MS = 60_000
const ROOT = join(import.meta.dirname, '..')

interface TestContext {
  after(fn: () => void): void
}

function newFolder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'keyway-sdk-'))
  t.after(() => rmSync(path, { recursive: true, force: true }))
  return path
}

async function writeTarball(t: TestContext): Promise<string> {
  const path = join(newFolder(t), 'sdk.tgz')
  writeFileSync(path, (await packSdk()).content)
  return path
}

/** Serves the package over HTTP, as a Keyway instance does. */
async function serveTarball(t: TestContext): Promise<string> {
  const { content } = await packSdk()
  const server = createServer((_, response) => response.end(content)).listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/sdk.tgz`
}

/** A project with the package installed, which tests share: each adds files of its own and changes no others. */
let installedProject: Promise<string> | undefined
after(async () => installedProject && rmSync(await installedProject, { recursive: true, force: true }))

function project(): Promise<string> {
  installedProject ??= install()
  return installedProject
}

async function install(): Promise<string> {
  const path = mkdtempSync(join(tmpdir(), 'keyway-sdk-'))
  writeFileSync(join(path, 'package.json'), '{"private":true}')
  writeFileSync(join(path, 'sdk.tgz'), (await packSdk()).content)
  const npmFlags = ['--no-audit', '--no-fund', '--offline', '--ignore-scripts']
  await run('npm', ['install', ...npmFlags, './sdk.tgz'], { cwd: path })
  return path
}

const filesOf = (path: string) =>
  Object.fromEntries(
    readdirSync(path, { recursive: true, encoding: 'utf8', withFileTypes: true })
      .filter(entry => entry.isFile())
      .map(entry => join(entry.parentPath, entry.name))
      .map(file => [file.slice(path.length), readFileSync(file, 'utf8')]),
  )

describe('the package', () => {
  test('is built from the current sources (else: npm run build -w packages/sdk)', t => {
    const freshBuild = newFolder(t)
    buildSdk(freshBuild)
    assert.deepEqual(filesOf(join(ROOT, 'dist')), filesOf(freshBuild))
  })

  test('is reproducible and has no dependencies', async () => {
    assert.deepEqual(await packSdk(), await packSdk())
    assert.equal(JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).dependencies, undefined)
  })

  test('has a version of its own for each build, under an immutable address to which /sdk.tgz redirects', async t => {
    const { url } = await startKeyway(t)
    const redirect = await fetch(`${url}/sdk.tgz`, { redirect: 'manual' })
    const { version, content } = await packSdk(url)
    assert.match(version, /^\d+\.\d+\.\d+-b[0-9a-f]{12}$/)
    assert.equal(redirect.status, 302)
    assert.equal(redirect.headers.get('location'), `/sdk-${version}.tgz`)
    const response = await fetch(`${url}/sdk-${version}.tgz`)
    assert.equal(response.headers.get('content-type'), 'application/gzip')
    assert.equal(response.headers.get('cache-control'), 'public, max-age=31536000, immutable')
    assert.deepEqual(new Uint8Array(await response.arrayBuffer()), content)
    assert.notEqual((await packSdk('https://other.example.com')).version, version)
    const otherVersionAnswer = await fetch(`${url}/sdk-0.0.9.tgz`)
    assert.equal(otherVersionAnswer.status, 404)
    assert.match((await otherVersionAnswer.json()).detail, /\/sdk\.tgz redirects to it/)
  })

  test('has what importers need and nothing else', async () => {
    const packedFiles = filesOf(join(await project(), 'node_modules/@keyway/sdk'))
    const builtNames = Object.keys(filesOf(join(ROOT, 'dist'))).filter(name => name.endsWith('.js'))
    const names = Object.keys(packedFiles).filter(
      name => !name.startsWith('/vendor/ws/') && !name.endsWith('.d.ts'),
    )
    assert.deepEqual(
      names.sort(),
      ['/README.md', ...builtNames.map(name => `/dist${name}`), '/package.json'].sort(),
    )
    const declarations = Object.keys(packedFiles).filter(name => name.endsWith('.d.ts'))
    assert.ok(declarations.includes('/dist/agent.d.ts'))
    assert.deepEqual(
      declarations.filter(name => /command|environment|file-lock/.test(name)),
      [],
    )
  })

  test('can be installed, imported and required', async () => {
    const path = await project()
    const names =
      "[typeof Agent, typeof Keyway, typeof verifyAgentToken, HUB_PROTOCOL, typeof fileTokenStore].join(' ')"
    const list = '{ Agent, Keyway, verifyAgentToken, HUB_PROTOCOL }'
    const [sdk, node] = ["'@keyway/sdk'", "'@keyway/sdk/node'"]
    const modules = `import ${list} from ${sdk}\nimport { fileTokenStore } from ${node}\n`
    const commonJs = `const ${list} = require(${sdk})\nconst { fileTokenStore } = require(${node})\n`
    writeFileSync(join(path, 'a.mjs'), `${modules}console.log(${names})`)
    writeFileSync(join(path, 'b.cjs'), `${commonJs}console.log(${names})`)
    for (const file of ['a.mjs', 'b.cjs']) {
      const { stdout } = await run(process.execPath, [file], { cwd: path })
      assert.equal(stdout, 'function function function keyway.hub.v1 function\n')
    }
  })

  test('has types that compile in the strictest mode, for interfaces, and from CommonJS', async () => {
    const path = await project()
    writeFileSync(
      join(path, 'index.ts'),
      `import { Agent, Keyway, KeywayError, verifyAccessToken, type ApiKeyObject } from '@keyway/sdk'
import { CLOSE_CODES } from '@keyway/sdk/protocol'
import { fileTokenStore } from '@keyway/sdk/node'
const agent = new Agent({ url: 'https://keyway.test', apiKey: 'x', WebSocket })
agent.on('disconnected', ({ code, willReconnect }) => { const c: number = code; const w: boolean = willReconnect; void c; void w })
// @ts-expect-error no such event
agent.on('nonsense', () => {})
// @ts-expect-error functions are no JSON
void agent.send('all', () => {})
export async function keys(): Promise<ApiKeyObject['status'][]> {
  const page = await new Keyway().apiKeys.list({ status: 'active' })
  return page.data.map(key => key.status)
}
interface Reading { celsius: number; place?: string; tags: { name: string }[] }
export const report = (reading: Reading): Promise<unknown> => agent.send('all', reading)
export const options = (signal: AbortSignal | undefined): unknown => new Agent({ url: undefined, signal })
// @ts-expect-error a Date is no JSON
void agent.send('all', { at: new Date() })
export const sid = async (token: string): Promise<string> => (await verifyAccessToken(token, { issuer: 'x' })).sid
export const retryable = (error: unknown): boolean => error instanceof KeywayError && error.retryable
export const client = new Keyway({ tokens: fileTokenStore('session.json') })
export const reconnect: 'never' = CLOSE_CODES[4410].reconnect
`,
    )
    const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc')
    const baseOptions = [
      '--noEmit',
      '--strict',
      '--skipLibCheck',
      'false',
      '--exactOptionalPropertyTypes',
      '--types',
      '',
      '--lib',
      'es2022,dom',
    ]
    const commonJs = `import { Agent } from '@keyway/sdk'\nexport const agent = new Agent({ apiKey: 'x' })\n`
    writeFileSync(join(path, 'common.cts'), commonJs)
    for (const [module, resolution, ...more] of [
      ['nodenext', 'nodenext', 'common.cts'],
      ['node20', 'node16', 'common.cts'],
      ['esnext', 'bundler'],
    ] as const) {
      const options = [
        ...baseOptions,
        '--target',
        'es2022',
        '--module',
        module,
        '--moduleResolution',
        resolution,
      ]
      await run(process.execPath, [tsc, ...options, 'index.ts', ...more], { cwd: path }).catch(error =>
        assert.fail(`${module}:\n${error.stdout}`),
      )
    }
  })

  test('its README’s agent answers each message once, and goes on without agents:send', async t => {
    const { url, keyway } = await startKeyway(t)
    const path = await project()
    const readme = readFileSync(join(ROOT, 'README.md'), 'utf8')
    const [, program] = /## An agent\n\n```js\n([\s\S]*?)```/.exec(readme)!
    writeFileSync(join(path, 'agent.mjs'), program!.replace('https://keyway.example.com', url))
    let output = ''
    const start = async (key: string) => {
      const env = { ...process.env, KEYWAY_API_KEY: key }
      const child = spawn(process.execPath, ['agent.mjs'], { cwd: path, env })
      t.after(() => void child.kill('SIGKILL'))
      for (const stream of [child.stdout, child.stderr]) stream.on('data', chunk => (output += chunk))
      return child
    }
    const [muteKey, echoKey] = [
      await keyway.apiKeys.create({ scopes: ['agent:connect'] }),
      await keyway.apiKeys.create(),
    ]
    const muteAgent = await start(muteKey.key)
    await start(echoKey.key)
    const otherAgent = new Agent({ url, apiKey: (await keyway.apiKeys.create()).key })
    t.after(() => otherAgent.close())
    const messages = otherAgent[Symbol.asyncIterator]()
    await until(
      'three agents',
      async () => (await keyway.agents.list()).data.length === 3 || assert.equal(output, ''),
    )
    for (const data of ['hello', { echo: 'hello' }, 'again']) await otherAgent.send(echoKey.id, data)
    const answers = [(await messages.next()).value.data, (await messages.next()).value.data]
    assert.deepEqual(answers, [{ echo: 'hello' }, { echo: 'again' }], 'and no echo of an echo')
    await otherAgent.send(muteKey.id, 'hello')
    await until('a refusal', () => /agents:send/.test(output))
    assert.equal((await keyway.agents.list()).data.length, 3)
    const exited = once(muteAgent, 'exit')
    await keyway.apiKeys.revoke(muteKey.id)
    assert.deepEqual(await exited, [0, null])
    assert.match(output, /was revoked\. Make a new key/)
  })

  test('passes publint', async t => {
    const publint = await tool(t, 'publint')
    if (publint) await run(process.execPath, [publint, '--strict', await writeTarball(t)])
  })

  test('passes are-the-types-wrong', async t => {
    const attw = await tool(t, 'attw')
    // The package has only ES modules. Node's require() loads them (see the test above), which attw does not know.
    if (attw)
      await run(process.execPath, [
        attw,
        '--ignore-rules',
        'cjs-resolves-to-esm',
        '--',
        await writeTarball(t),
      ])
  })
})

describe('the demo command', () => {
  test('connects by npx from an empty folder, and exits with status 77 when stopped permanently', async t => {
    const server = await startProtocolServer(t)
    const cache = newFolder(t)
    const env = { ...process.env, KEYWAY_URL: server.url, KEYWAY_API_KEY: TEST_KEY, npm_config_cache: cache }
    const runningCommand = run('npx', ['-y', await serveTarball(t)], { cwd: newFolder(t), env })
    runningCommand.catch(error => server.connections.push(error))
    const end = await server.connections.next(NPX_TIMEOUT_MS)
    if (end instanceof Error) throw end
    end.send({ type: 'message', id: '1', from: 'somebody', from_key_id: null, data: 'hello' })
    const { to, data } = (await end.frames.next()) as { to: string; data: unknown }
    assert.deepEqual({ to, data }, { to: 'somebody', data: { echo: 'hello' } })
    end.close(4410, 'revoked')
    await assert.rejects(runningCommand, (error: { code: number; stdout: string }) => {
      assert.equal(error.code, 77)
      assert.match(error.stdout, /ready: connection connection-1/)
      assert.match(error.stdout, /stopped: .*revoked\. Make a new key/)
      return true
    })
  })

  test('connects where Node has no WebSocket, with the client in the package', async t => {
    const server = await startProtocolServer(t)
    const env = { ...process.env, KEYWAY_URL: server.url, KEYWAY_API_KEY: TEST_KEY }
    const program = join(await project(), 'node_modules/@keyway/sdk/dist/keyway-agent.js')
    const runningCommand = run(process.execPath, ['--no-experimental-websocket', program], { env })
    runningCommand.catch(error => server.connections.push(error))
    const end = await server.connections.next()
    if (end instanceof Error) throw end
    end.close(4410, 'revoked')
    await assert.rejects(runningCommand, { code: 77, stdout: /ready: connection connection-1/ })
  })

  test('connects by npx from a real instance’s URL, and exits when its key is revoked', async t => {
    const { url, keyway } = await startKeyway(t)
    const { id, key } = await keyway.apiKeys.create({ name: 'by npx' })
    const env = { ...process.env, KEYWAY_URL: url, KEYWAY_API_KEY: key, npm_config_cache: newFolder(t) }
    const child = spawn('npx', ['-y', `${url}/sdk.tgz`], { cwd: newFolder(t), env })
    t.after(() => void child.kill('SIGKILL'))
    let output = ''
    const connected = new Promise<void>((resolve, reject) => {
      child.stdout.on('data', chunk => {
        output += chunk
        if (/ready: connection .*key by npx/.test(output)) resolve()
      })
      child.once('exit', status => reject(new Error(`npx ended with ${status}: ${output}`)))
    })
    await connected
    assert.equal((await keyway.agents.list()).data.length, 1)
    const exited = once(child, 'exit')
    await keyway.apiKeys.revoke(id)
    assert.deepEqual(await exited, [77, null])
    assert.match(output, /stopped: .*revoked\. Make a new key/)
  })

  test('names a missing setting, with status 78', async () => {
    const env = { PATH: process.env.PATH }
    const runningCommand = run(process.execPath, [join(ROOT, 'dist/keyway-agent.js')], { env })
    await assert.rejects(runningCommand, { code: 78, stderr: /KEYWAY_URL/ })
  })

  test('exits with status 77 when the exchange is refused', async t => {
    const server = await startProtocolServer(t)
    server.answer = () => problem(401, 'api_key_expired')
    const env = { PATH: process.env.PATH, KEYWAY_URL: server.url, KEYWAY_API_KEY: TEST_KEY }
    await assert.rejects(run(process.execPath, [join(ROOT, 'dist/keyway-agent.js')], { env }), { code: 77 })
  })
})
