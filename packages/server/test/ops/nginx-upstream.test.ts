import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { Agent, type RequestOptions, request } from 'node:https'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { postgresMissing } from '../support/engines.ts'
import { freePort } from '../support/free-port.ts'
import { nginxMissing, runNginx } from '../support/nginx.ts'
import { startNodeProcess } from '../support/node-processes.ts'
import { createKey, createPrintedLinks, freshPostgres, signIn } from '../support/nodes.ts'
import { temporaryFolder } from '../support/serve.ts'
import { makeCertificate } from './certificate.ts'

const NGINX_CONF = join(import.meta.dirname, '../../../../deploy/production/nginx.conf')
const CLIENTS = 12

test('behind the documented nginx neither a restart nor the death of a node fails an exchange or a GET', {
  skip: nginxMissing() || postgresMissing(),
}, async t => {
  const database = { KEYWAY_DATABASE_URL: await freshPostgres(t) }
  const links = createPrintedLinks()
  const ports = [await freePort(), await freePort()]
  const startNode = (port: number) => startNodeProcess(t, { ...database, KEYWAY_PORT: String(port) }, links)
  const nodes = await Promise.all(ports.map(startNode))
  const session = await signIn(nodes[0]!.origin, links, 'ada@example.com')
  const { key } = (await createKey(nodes[0]!.origin, session.access_token)).body
  const sendRequest = await startProxy(t, ports)

  const statuses = new Map<number, number>()
  const pendingAnswers = new Set<Promise<number>>()
  let isOver = false
  const countStatus = async (answer: Promise<number>) => {
    pendingAnswers.add(answer)
    const status = await answer
    pendingAnswers.delete(answer)
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
  }
  const runClient = async () => {
    while (!isOver) {
      await countStatus(sendRequest('/auth/agent-token', { api_key: key }))
      await countStatus(sendRequest('/v1/me', undefined, session.access_token))
    }
  }
  const runningClients = Promise.all(Array.from({ length: CLIENTS }, runClient))
  for (const signal of ['SIGTERM', 'SIGKILL'] as const)
    for (const [index, port] of ports.entries()) {
      assert.equal(await nodes[index]!.served.end(signal), signal === 'SIGTERM' ? 0 : signal)
      nodes[index] = await startNode(port)
      // Waits for requests that this node refused while it was down: nginx retries them on the other, which ends next.
      await Promise.all(pendingAnswers)
    }
  isOver = true
  await runningClients
  t.diagnostic(`${statuses.get(200)} requests were answered`)
  assert.deepEqual([...statuses.keys()], [200])
})

/** Runs nginx with the documented file in front of nodes on these ports. The result sends a request over TLS. */
async function startProxy(t: TestContext, ports: readonly number[]) {
  const folder = temporaryFolder()
  t.after(folder.remove)
  const certificate = await makeCertificate(folder.path)
  const [plain, secure] = [await freePort(), await freePort()]
  const siteConfiguration = readFileSync(NGINX_CONF, 'utf8')
    .replace(/^ *server 127\.0\.0\.1:@PORT@ (.*);$/m, (_line, options) =>
      ports.map(port => `server 127.0.0.1:${port} ${options};`).join('\n'),
    )
    .replaceAll('listen 80;', `listen ${plain};`)
    .replaceAll('listen 443 ssl;', `listen ${secure} ssl;`)
    .replaceAll(/ *listen \[::\].*\n/g, '')
    .replaceAll('@DOMAIN@', 'localhost')
    .replace(/ssl_certificate .*/, 'ssl_certificate cert.pem;')
    .replace(/ssl_certificate_key .*/, 'ssl_certificate_key key.pem;')
  const nginxConf = [
    'daemon off; pid nginx.pid; worker_processes 1;',
    'events {}',
    'http { access_log off; include site.conf; }',
  ].join('\n')
  const files = {
    'nginx.conf': nginxConf,
    'site.conf': siteConfiguration,
    'cert.pem': certificate.cert,
    'key.pem': certificate.key,
  }
  await runNginx(t, files, `http://localhost:${plain}/livez`)
  const agent = new Agent({ keepAlive: true, ca: certificate.cert })
  t.after(() => agent.destroy())
  return async (path: string, body?: object, token?: string): Promise<number> => {
    const options: RequestOptions = {
      agent,
      host: 'localhost',
      port: secure,
      path,
      method: body ? 'POST' : 'GET',
      headers: {
        ...(body && { 'content-type': 'application/json' }),
        ...(token && { authorization: `Bearer ${token}` }),
      },
    }
    return new Promise((resolve, reject) => {
      const outgoing = request(options, answer => {
        text(answer).then(() => resolve(answer.statusCode!), reject)
      })
      outgoing.on('error', reject)
      outgoing.end(body && JSON.stringify(body))
    })
  }
}
