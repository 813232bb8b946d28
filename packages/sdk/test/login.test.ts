import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type Page, sharedBrowser } from '../../server/test/support/browser.ts'
import { until } from '../../server/test/support/patience.ts'
import { startWeb, typeCode, type WebServer } from '../../server/test/support/web.ts'

const openBrowser = sharedBrowser()
const COMMAND = join(import.meta.dirname, '../dist/keyway-agent.js')
const ADA = 'ada@example.com'

test('npx … login opens the page, gets the approved key into a private file, and npx … run connects with it', async t => {
  const browser = await openBrowser(t)
  if (!browser) return
  const web = await startWeb(t)
  const machine = newMachine(t)
  const npxEnv = { ...machine.env, npm_config_cache: join(machine.home, 'npm') }
  const login = start(t, 'npx', ['-y', `${web.url}/sdk.tgz`, 'login', '--scope', 'agent:connect'], npxEnv)
  const address = await until('the browser was started', () => machine.openedPage())
  assert.ok((await login.outputWith(/Waiting/)).includes(address))

  const page = await (await browser.newContext()).newPage()
  await page.goto(address)
  await signIn(page, web)
  await page.getByRole('heading', { name: /asks for access/ }).waitFor()
  assert.ok((await page.locator('main').textContent())!.includes(hostname()))
  const [code = ''] = /[A-Z]{4}-[A-Z]{4}/.exec((await page.locator('main').textContent())!) ?? []
  assert.ok(login.output().includes(code), 'the codes are to be compared')
  await page.getByLabel('I started this myself').check()
  await page.getByRole('button', { name: 'Approve' }).click()
  await page.getByRole('heading', { name: 'The device is connected' }).waitFor()

  assert.equal(await login.status(), 0)
  assert.match(login.output(), /Connected\. The key .* may agent:connect until 20\d\d-/)
  const path = join(machine.home, 'config/keyway/credentials.json')
  assert.equal(statSync(path).mode & 0o777, 0o600)
  assert.equal(statSync(join(path, '..')).mode & 0o777, 0o700)
  const { services } = JSON.parse(readFileSync(path, 'utf8'))
  assert.equal(services[web.url].name, hostname())
  assert.doesNotMatch(login.output(), /svc_\w{20}/, 'the key itself is not shown')

  const agent = start(t, 'npx', ['-y', `${web.url}/sdk.tgz`, 'run'], npxEnv)
  assert.ok((await agent.outputWith(/ready: connection/)).includes(`key ${hostname()}`))
  await page.goto(`${web.url}/keys`)
  await page.getByText(hostname()).first().waitFor()
  await post(`${web.url}/auth/revoke`, { token: services[web.url].key })
  assert.equal(await agent.status(), 77)
})

test('logout forgets the key and says that it still works', async t => {
  const web = await startWeb(t)
  const machine = newMachine(t)
  await logIn(t, web, machine)
  const { services } = JSON.parse(readFileSync(machine.credentials, 'utf8'))
  const logout = start(t, process.execPath, [COMMAND, 'logout'], machine.env)
  assert.equal(await logout.status(), 0)
  assert.match(logout.output(), /The key itself still works\. Revoke it at http:.*\/keys\//)
  assert.equal(existsSync(machine.credentials), false)
  const exchange = await post(`${web.url}/auth/agent-token`, { api_key: services[web.url].key })
  assert.equal(exchange.status, 200)
  const agent = start(t, process.execPath, [COMMAND, 'run'], { ...machine.env, KEYWAY_URL: web.url })
  assert.equal(await agent.status(), 78)
  assert.match(agent.output(), /has no key for .*login/)
})

test('a second login keeps the keys of other services, and names the key that it replaces', async t => {
  const web = await startWeb(t)
  const machine = newMachine(t)
  await logIn(t, web, machine)
  const credentialsBefore = JSON.parse(readFileSync(machine.credentials, 'utf8'))
  const otherService = { 'https://other.test': credentialsBefore.services[web.url] }
  writeFileSync(
    machine.credentials,
    JSON.stringify({ ...credentialsBefore, services: { ...credentialsBefore.services, ...otherService } }),
  )
  const login = await logIn(t, web, machine, ['--name', 'lathe'])
  assert.match(login.output(), /The key that was stored before still works/)
  const { services, latest } = JSON.parse(readFileSync(machine.credentials, 'utf8'))
  assert.deepEqual(Object.keys(services).sort(), [web.url, 'https://other.test'].sort())
  assert.deepEqual([services[web.url].name, latest], ['lathe', web.url])
})

test('a denied login ends with status 77 and stores nothing', async t => {
  const web = await startWeb(t)
  const machine = newMachine(t)
  const login = startLogin(t, web, machine)
  await decide(web, await login.outputWith(/Waiting/), 'denied')
  assert.equal(await login.status(), 77)
  assert.match(login.output(), /was denied/)
  assert.equal(existsSync(machine.credentials), false)
})

test('a scope that may not be requested, an invalid command line and a service without the device grant get clear errors', async t => {
  const web = await startWeb(t)
  const { env } = newMachine(t)
  const cases: [args: string[], status: number, output: RegExp][] = [
    [['login', '--url', web.url, '--scope', 'admin:write'], 77, /admin:write/],
    [['login', '--url', `${web.url}/nowhere`, '--scope', 'agents:nothing'], 77, /agents:nothing/],
    [['login', '--url', 'nonsense'], 78, /is not a URL/],
    [['login', '--url', 'http://localhost:9'], 1, /localhost:9/],
    [['dance'], 64, /Unknown command "dance"/],
    [['login', '--bogus'], 64, /--bogus/],
    [['login', 'twice'], 64, /Unknown argument "twice"/],
    [['--help'], 0, /--no-browser/],
  ]
  for (const [args, status, output] of cases) {
    const command = start(t, process.execPath, [COMMAND, ...args], env)
    assert.equal(await command.status(), status, command.output())
    assert.match(command.output(), output)
  }
})

function post(url: string, body: object): Promise<Response> {
  const headers = { 'content-type': 'application/json' }
  return fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
}

interface Machine {
  home: string
  credentials: string
  env: NodeJS.ProcessEnv
  /** The address that the command opened in the browser; undefined if it has not opened any yet. */
  openedPage(): string | undefined
}

/** A home directory of its own, and a browser that only records the URL to open. */
function newMachine(t: TestContext): Machine {
  const home = mkdtempSync(join(tmpdir(), 'keyway-login-'))
  t.after(() => rmSync(home, { recursive: true, force: true }))
  const [script, urlFile] = [join(home, 'browser'), join(home, 'opened')]
  writeFileSync(script, `#!/bin/sh\nprintf '%s' "$1" > '${urlFile}'\n`)
  chmodSync(script, 0o755)
  const inheritedVariables = Object.entries(process.env).filter(([name]) => !name.startsWith('KEYWAY_'))
  const folders = { HOME: home, XDG_CONFIG_HOME: join(home, 'config'), BROWSER: script }
  return {
    home,
    credentials: join(home, 'config/keyway/credentials.json'),
    env: { ...Object.fromEntries(inheritedVariables), ...folders },
    openedPage: () => (existsSync(urlFile) ? readFileSync(urlFile, 'utf8') || undefined : undefined),
  }
}

interface RunningCommand {
  output(): string
  /** Waits until the command has printed a match; returns its whole output. */
  outputWith(pattern: RegExp): Promise<string>
  status(): Promise<number | null>
}

function start(t: TestContext, program: string, args: string[], env: NodeJS.ProcessEnv): RunningCommand {
  const child: ChildProcess = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  t.after(() => void child.kill('SIGKILL'))
  const ended = once(child, 'close')
  let output = ''
  for (const stream of [child.stdout!, child.stderr!]) stream.on('data', chunk => (output += chunk))
  return {
    output: () => output,
    outputWith: pattern =>
      until(`the command prints ${pattern}`, () => (pattern.test(output) ? output : undefined)),
    status: async () => (await ended)[0],
  }
}

function startLogin(t: TestContext, web: WebServer, { env }: Machine, args: string[] = []): RunningCommand {
  const loginArgs = [COMMAND, 'login', '--url', web.url, '--no-browser', ...args]
  return start(t, process.execPath, loginArgs, env)
}

async function logIn(t: TestContext, web: WebServer, machine: Machine, args: string[] = []) {
  const login = startLogin(t, web, machine, args)
  await decide(web, await login.outputWith(/Waiting/), 'approved')
  assert.equal(await login.status(), 0, login.output())
  return login
}

/** Approves or denies the device authorization as the page does. */
async function decide(web: WebServer, output: string, decision: 'approved' | 'denied'): Promise<void> {
  const { deviceAuthorizations, magicLinks } = web.server.services
  const { searchParams } = new URL(/http\S+ticket=\S+/.exec(output)![0])
  const authorization = await deviceAuthorizations.findByLink(
    searchParams.get('ticket')!,
    searchParams.get('user_code')!,
  )
  const caller = { address: '127.0.0.1', network: '127.0.0.1', client: null }
  const mailCountBefore = (await web.mails(ADA, 0)).length
  const { loginId } = await magicLinks.send({ email: ADA as never, appId: 'console' }, caller)
  const [mail] = await web.mails(ADA, mailCountBefore + 1)
  const proof = { loginId, code: mail!.code!, email: ADA as never }
  const person = await magicLinks.verify(proof, 'page', caller)
  assert.equal(await deviceAuthorizations.decide(authorization!.id, decision, person, caller), 'done')
}

async function signIn(page: Page, web: WebServer): Promise<void> {
  await page.getByLabel('E-mail address').fill(ADA)
  await page.getByRole('button', { name: 'Send me a link' }).click()
  await page.waitForURL('**/check-mail')
  const [mail] = await web.mails(ADA)
  await typeCode(page, mail!.code!)
}
