import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { createRequire } from 'node:module'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import { pathToFileURL } from 'node:url'
import { requireTool } from '../../../../tools/install.ts'
import { installOnce } from '../../../../tools/npm-folder.ts'
import { BY_COMMAND_LINE } from '../../src/audit/audit.ts'
import { root } from '../structure/source.ts'
import { devicePath, NEW_KEY, sourceOf } from './all-pages.ts'
import { authorizePath, newVerifier, registerShop } from './authorize.ts'
import { ADA, createClient, signedInClient } from './page-client.ts'
import { until } from './patience.ts'
import { address, caller } from './services.ts'
import { startWeb, type WebServer } from './web.ts'

/*
 * `npm run lighthouse`: Lighthouse's scores of every kind of page, on a phone as Lighthouse simulates it. Fails below
 * 95 in performance and 100 in accessibility and best practices. An argument selects pages whose name contains it.
 */

const FOLDER = join(root, 'tools/lighthouse')
const MINIMUM_SCORES = { performance: 95, accessibility: 100, 'best-practices': 100 } as const
type Category = keyof typeof MINIMUM_SCORES
const pathFilter = process.argv[2] ?? ''
const MISSING_PAGE = '/nowhere'

interface Result {
  lhr: {
    categories: Record<Category, { score: number | null; auditRefs: { id: string; weight: number }[] }>
    audits: Record<string, { score: number | null; title: string }>
    runtimeError?: { message: string }
  }
}
type Lighthouse = (url: string, flags: object) => Promise<Result | undefined>

if (!(await installOnce(FOLDER)))
  throw new Error('Lighthouse cannot be installed: run npm ci in tools/lighthouse')
const { default: lighthouse } = (await import(
  pathToFileURL(createRequire(join(FOLDER, 'package.json')).resolve('lighthouse')).href
)) as { default: Lighthouse }

const web = await startWeb(null)
const newKey = await serveNewKey(web)
const chromium = await startChromium()
try {
  process.exitCode = (await measureAll(web)) ? 0 : 1
} finally {
  await chromium.stop()
  newKey.close()
  await web.close()
}

async function measureAll(web: WebServer): Promise<boolean> {
  const kinds = (await openPageKinds(web)).filter(({ name }) => name.includes(pathFilter))
  let areScoresGood = true
  console.log(`${'page'.padEnd(34)}performance  accessibility  best practices`)
  for (const { name, open, cookie } of kinds) {
    const { scores, failed } = await measure(await open(), cookie)
    const row = Object.entries(scores).map(([category, score]) =>
      String(score).padEnd(category === 'performance' ? 13 : 15),
    )
    console.log(`${name.replace(/[0-9a-f-]{36}/, '{id}').padEnd(34)}${row.join('')}${failed.join('; ')}`)
    for (const [category, score] of Object.entries(scores))
      areScoresGood &&= score >= MINIMUM_SCORES[category as Category]
  }
  return areScoresGood
}

interface PageKind {
  name: string
  /** Returns a URL of such a page, which may be valid for some minutes only. */
  open(): Promise<string>
  /** The cookies of the signed-in person; empty if the page is opened without signing in. */
  cookie: string
}

async function openPageKinds(web: WebServer): Promise<PageKind[]> {
  const client = await signedInClient(web)
  const { services } = web.server
  const user = (await services.storage.store.users.findByEmail(address(ADA)))!
  await services.users.setRole(user.id, 'admin', BY_COMMAND_LINE)
  const keyAttributes = {
    appId: 'service-sdk',
    allowedNetworks: [],
    scopes: null,
    name: 'robot',
    expiresAt: null,
  }
  const { id } = (await services.apiKeys.create(user.id, keyAttributes, caller())).apiKey
  await registerShop(web)
  const cookie = [...client.jar].map(([name, value]) => `${name}=${value}`).join('; ')
  const urlOf = (path: string) => async () => web.url + path
  const open = [
    '/sign-in',
    '/docs',
    '/docs/agents',
    '/docs/api/api-keys',
    '/errors/rate_limited',
    MISSING_PAGE,
  ]
  const signedInPaths = [
    ...['/keys', '/keys/new', `/keys/${id}`, `/keys/${id}/live`, `/keys/${id}/revoke`],
    ...[
      '/agents',
      '/sessions',
      '/account',
      '/account/balance',
      '/device',
      '/inbox',
      '/docs/call/updateApiKey',
      '/docs/search?q=key',
    ],
    ...[
      '',
      '/users',
      `/users/${user.id}`,
      '/keys',
      '/apps',
      '/register-app',
      '/policies',
      '/nodes',
      '/audit',
    ].map(path => `/admin${path}`),
  ]
  return [
    ...open.map(path => ({ name: path, open: urlOf(path), cookie: '' })),
    { name: '/verify', open: () => freshLink(web), cookie: '' },
    ...signedInPaths.map(path => ({ name: path, open: urlOf(path), cookie })),
    { name: '/keys (a new key)', open: async () => newKey.url, cookie },
    { name: '/device (approval)', open: async () => web.url + (await devicePath(web)), cookie },
    { name: '/oauth/authorize (consent)', open: urlOf(authorizePath(newVerifier().challenge)), cookie },
  ]
}

async function freshLink(web: WebServer): Promise<string> {
  const email = 'bob@example.com'
  const mailCountBefore = (await web.mails(email, 0)).length
  const client = createClient(web.url)
  await client.post('/sign-in', { form_token: await client.formToken('/sign-in'), email })
  return (await web.mails(email, mailCountBefore + 1))[0]!.link!
}

/**
 * Proxies the pages on another port, where GET / submits the form of a new key and returns the page that answers it,
 * since Lighthouse submits no forms.
 */
async function serveNewKey(web: WebServer): Promise<{ url: string; close(): void }> {
  const server = createHttpServer(async (incoming, outgoing) => {
    const { cookie = '', accept = '' } = incoming.headers
    if (incoming.url === '/') {
      const page = await sourceOf(web.url + NEW_KEY, { cookie, accept })
      return outgoing.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(page)
    }
    const answer = await fetch(web.url + incoming.url, { headers: { cookie, accept } })
    outgoing.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' })
    if (answer.body) Readable.fromWeb(answer.body as ReadableStream).pipe(outgoing)
    else outgoing.end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/`,
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

async function measure(url: string, cookie: string) {
  const result = await run(url, {
    port: chromium.port,
    onlyCategories: Object.keys(MINIMUM_SCORES),
    logLevel: 'silent',
    output: 'json',
    // The page that answers 404 is measured too.
    ignoreStatusCode: true,
    // The browser logs the error status of this page on purpose.
    skipAudits: url.endsWith(MISSING_PAGE) ? ['errors-in-console'] : [],
    disableStorageReset: true,
    extraHeaders: cookie ? { Cookie: cookie } : {},
  })
  const { categories, audits } = result
  const names = Object.keys(MINIMUM_SCORES) as Category[]
  const scores = Object.fromEntries(
    names.map(name => [name, Math.round((categories[name].score ?? 0) * 100)]),
  )
  const failedAudits = names
    .filter(name => scores[name]! < MINIMUM_SCORES[name])
    .flatMap(name => categories[name].auditRefs)
    .filter(({ id, weight }) => weight > 0 && (audits[id]?.score ?? 1) < 0.9)
    .map(({ id }) => `${id}: ${audits[id]!.title}`)
  return { scores, failed: failedAudits }
}

/** Runs Lighthouse, and a second time after a runtime error: on a busy machine the browser may not answer in time. */
async function run(url: string, flags: object): Promise<Result['lhr']> {
  const { lhr } = (await lighthouse(url, flags))!
  return lhr.runtimeError ? (await lighthouse(url, flags))!.lhr : lhr
}

/** Starts a browser with a debugging port for Lighthouse. */
async function startChromium(): Promise<{ port: number; stop(): Promise<void> }> {
  const port = await freeDebuggingPort()
  const profile = mkdtempSync(join(tmpdir(), 'keyway-lighthouse-'))
  const flags = [
    '--headless',
    '--no-sandbox',
    '--disable-gpu',
    '--disable-dev-shm-usage',
    `--user-data-dir=${profile}`,
  ]
  const child = spawn(
    await requireTool('chromium'),
    [...flags, `--remote-debugging-port=${port}`, 'about:blank'],
    // A process group of its own, killed as a whole: the program may be a shell script that starts the browser.
    { stdio: 'ignore', detached: true },
  )
  const exited = once(child, 'exit')
  const kill = () => void process.kill(-child.pid!, 'SIGKILL')
  process.once('exit', kill)
  // Ctrl-C does not reach another process group.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
  await until('Chromium answers', () =>
    fetch(`http://127.0.0.1:${port}/json/version`).then(
      answer => answer.ok || undefined,
      () => undefined,
    ),
  )
  return {
    port,
    async stop() {
      process.off('exit', kill)
      kill()
      await exited
      rmSync(profile, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
    },
  }
}

function freeDebuggingPort(): Promise<number> {
  return new Promise(resolve => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })
}
