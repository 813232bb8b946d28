import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { requireTool } from '../../../../tools/install.ts'
import { installOnce } from '../../../../tools/npm-folder.ts'
import { BY_COMMAND_LINE } from '../../src/audit/audit.ts'
import { root } from '../structure/source.ts'
import { ADA, signedIn } from './page-client.ts'
import { until } from './patience.ts'
import { address, caller } from './services.ts'
import { startWeb, type WebServer } from './web.ts'

/*
 * `npm run lighthouse`: Lighthouse's scores of every kind of page, on a phone as Lighthouse simulates it. Fails below 95 in
 * performance and 100 in accessibility and best practices. An argument selects pages whose path contains it.
 */

const FOLDER = join(root, 'tools/lighthouse')
const LEAST = { performance: 95, accessibility: 100, 'best-practices': 100 } as const
type Category = keyof typeof LEAST
const wanted = process.argv[2] ?? ''
const MISSING = '/nowhere'

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
const chromium = await startChromium()
try {
  process.exitCode = (await measureAll(web)) ? 0 : 1
} finally {
  chromium.stop()
  await web.close()
}

async function measureAll(web: WebServer): Promise<boolean> {
  const { paths, cookie } = await everyKind(web)
  let isGood = true
  console.log(`${'page'.padEnd(34)}performance  accessibility  best practices`)
  for (const [path, isSignedIn] of paths.filter(([path]) => path.includes(wanted))) {
    const { scores, failed } = await measure(web.url + path, isSignedIn ? cookie : '')
    const row = Object.entries(scores).map(([name, score]) =>
      String(score).padEnd(name === 'performance' ? 13 : 15),
    )
    console.log(`${path.replace(/[0-9a-f-]{36}/, '{id}').padEnd(34)}${row.join('')}${failed.join('; ')}`)
    for (const [name, score] of Object.entries(scores)) isGood &&= score >= LEAST[name as Category]
  }
  return isGood
}

/** One path of each kind of page, and whether somebody is signed in there. */
async function everyKind(web: WebServer): Promise<{ paths: [string, boolean][]; cookie: string }> {
  const client = await signedIn(web)
  const { services } = web.server
  const user = (await services.storage.store.users.findByEmail(address(ADA)))!
  await services.users.setRole(user.id, 'admin', BY_COMMAND_LINE)
  const made = { appId: 'service-sdk', allowedNetworks: [], scopes: null, name: 'robot', expiresAt: null }
  const { id } = (await services.apiKeys.create(user.id, made, caller())).apiKey
  const cookie = [...client.jar].map(([name, value]) => `${name}=${value}`).join('; ')
  const open = ['/sign-in', '/docs', '/docs/agents', '/errors/rate_limited', MISSING]
  const own = [
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
  return {
    paths: [
      ...open.map(path => [path, false] as [string, boolean]),
      ...own.map(path => [path, true] as [string, boolean]),
    ],
    cookie,
  }
}

async function measure(url: string, cookie: string) {
  const found = await run(url, {
    port: chromium.port,
    onlyCategories: Object.keys(LEAST),
    logLevel: 'silent',
    output: 'json',
    // A missing page is a page too.
    ignoreStatusCode: true,
    // The browser logs the error status of this page on purpose.
    skipAudits: url.endsWith(MISSING) ? ['errors-in-console'] : [],
    disableStorageReset: true,
    extraHeaders: cookie ? { Cookie: cookie } : {},
  })
  const { categories, audits } = found
  const names = Object.keys(LEAST) as Category[]
  const scores = Object.fromEntries(
    names.map(name => [name, Math.round((categories[name].score ?? 0) * 100)]),
  )
  const failed = names
    .filter(name => scores[name]! < LEAST[name])
    .flatMap(name => categories[name].auditRefs)
    .filter(({ id, weight }) => weight > 0 && (audits[id]?.score ?? 1) < 0.9)
    .map(({ id }) => `${id}: ${audits[id]!.title}`)
  return { scores, failed }
}

/** Once more where the machine was too busy for the browser to answer in time. */
async function run(url: string, flags: object): Promise<Result['lhr']> {
  const { lhr } = (await lighthouse(url, flags))!
  return lhr.runtimeError ? (await lighthouse(url, flags))!.lhr : lhr
}

/** A browser of its own with a port for Lighthouse. */
async function startChromium(): Promise<{ port: number; stop(): void }> {
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
    {
      stdio: 'ignore',
    },
  )
  await until('Chromium answers', () =>
    fetch(`http://127.0.0.1:${port}/json/version`).then(
      answer => answer.ok || undefined,
      () => undefined,
    ),
  )
  return {
    port,
    stop() {
      child.once('exit', () => rmSync(profile, { recursive: true, force: true }))
      child.kill()
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
