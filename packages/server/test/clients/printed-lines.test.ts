import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { environment, noPython, virtualEnvironment } from '../../../python/test/support/python.ts'
import { signedInClient } from '../support/page-client.ts'
import { until } from '../support/patience.ts'
import { temporaryFolder } from '../support/serve.ts'
import { startWeb, type WebServer } from '../support/web.ts'

const ENTITIES: Record<string, string> = { lt: '<', gt: '>', quot: '"', amp: '&', '#39': "'" }

/**
 * Creates a key on the web pages. Returns the lines that its page shows, by the names of their elements, and
 * `greetAgent`, which greets the agent from the page and returns its reply: undefined until an agent is connected.
 */
async function createKeyOnPage(web: WebServer) {
  const client = await signedInClient(web)
  const form_token = await client.formToken('/keys')
  const html = await (await client.post('/keys', { form_token, name: 'robot', access: 'agent' })).text()
  const lines: Record<string, string> = {}
  for (const [, name, line] of html.matchAll(/<code id="run-([\w-]+)"[^>]*>(.*?)<\/code>/gs))
    lines[name!] = line!.replace(/&(lt|gt|quot|amp|#39);/g, (_, entity) => ENTITIES[entity]!)
  const pagePath = /data-becomes="([^?"]+)/.exec(html)![1]!
  const greetAgent = async () => {
    const livePage = await (await client.get(`${pagePath}/live`)).text()
    const connection = /name="connection" value="([^"]+)"/.exec(livePage)?.[1]
    if (!connection) return undefined
    const helloPage = await (await client.post(`${pagePath}/live/hello`, { form_token, connection })).text()
    const reply = /<q>(.*?)<\/q>/.exec(helloPage)?.[1]
    if (reply === undefined) return undefined
    return { reply, isNamed: /<dd><bdi>keyway-sdk\/[\d.]+<\/bdi><\/dd>/.test(helloPage) }
  }
  return { lines, greetAgent }
}

/** Runs a line in a shell outside of the checkout, and kills it at the end of the test. */
function startInShell(t: TestContext, line: string, env: NodeJS.ProcessEnv): void {
  const folder = temporaryFolder()
  const child = spawn('sh', ['-c', line], { cwd: folder.path, env, detached: true, stdio: 'ignore' })
  t.after(() => {
    if (child.exitCode === null) process.kill(-child.pid!, 'SIGKILL')
    folder.remove()
  })
}

test('the lines for curl and Python on the page of a new key work as printed', {
  skip: noPython,
  timeout: 300_000,
}, async t => {
  const web = await startWeb(t)
  const { lines, greetAgent } = await createKeyOnPage(web)
  const { stdout } = await promisify(execFile)('sh', ['-c', lines.curl!])
  assert.deepEqual(Object.keys(JSON.parse(stdout)), ['token', 'agent_id', 'expires_in'])

  const virtualEnvironmentBin = await virtualEnvironment(t)
  const env = environment({ PATH: `${virtualEnvironmentBin}:${process.env.PATH}` })
  await promisify(execFile)('sh', ['-c', lines['python-once']!], {
    env,
    cwd: join(virtualEnvironmentBin, '..'),
  })
  startInShell(t, lines.python!, env)
  const { reply } = await until('the Python agent', greetAgent, 60_000)
  assert.match(reply!, /^Hello from .+, Python 3\.\d+/)
})

test('the line for Node on the page of a new key works as printed', { timeout: 300_000 }, async t => {
  const web = await startWeb(t)
  const { lines, greetAgent } = await createKeyOnPage(web)
  const cache = temporaryFolder()
  t.after(() => cache.remove())
  startInShell(t, lines.node!, { ...process.env, npm_config_cache: cache.path })
  const { reply, isNamed } = await until('the Node agent', greetAgent, 60_000)
  assert.match(reply!, /^Hello from .+, Node v\d+/)
  assert.ok(isNamed, 'its connection names the package')
})
