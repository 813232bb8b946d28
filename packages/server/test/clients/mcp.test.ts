import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { codeOf } from '../support/authorize.ts'
import { forEachEngine } from '../support/engines.ts'
import { freePort } from '../support/free-port.ts'
import { signedInClient } from '../support/page-client.ts'
import { caller } from '../support/services.ts'
import { selfSignedCertificate } from '../support/smtp.ts'
import type { WebServer } from '../support/web.ts'
import { EXAMPLES_FOLDER, installExample, startExample } from './example.ts'
import { newPerson, startRunning } from './running.ts'

const run = promisify(execFile)
const ADA = 'ada@example.com'
const EXAMPLE_FOLDER = join(EXAMPLES_FOLDER, 'mcp-server')
const MCP_SDK = join(EXAMPLE_FOLDER, 'node_modules/@modelcontextprotocol/sdk/dist/esm')
const NEW_KEY = { name: null, scopes: null, expiresAt: null, appId: 'service-sdk', allowedNetworks: [] }
const CALLBACK = 'http://127.0.0.1:3999/callback'
const METADATA = {
  client_name: 'An MCP client',
  redirect_uris: [CALLBACK],
  token_endpoint_auth_method: 'none',
}
const WITH_METADATA_DOCUMENTS = {
  KEYWAY_CLIENT_METADATA_DOCUMENTS: 'true',
  KEYWAY_WEBHOOK_PRIVATE_NETWORKS: '127.0.0.0/8,::1/128',
}

forEachEngine(engine => {
  test('an MCP server names its authorization server, and accepts only tokens for itself', async t => {
    if (!(await installExample(t, 'mcp-server'))) return
    const web = await startRunning(engine, t)
    const { resource, user, key } = await startServer(web, t)
    const refusal = await call(resource)
    const [, metadataUrl = ''] =
      /resource_metadata="([^"]+)"/.exec(refusal.headers.get('www-authenticate')!) ?? []
    const metadata = await (await fetch(metadataUrl)).json()
    assert.deepEqual([metadata.resource, metadata.authorization_servers], [resource, [web.url]])

    const { agentTokens } = web.server.services
    const hubToken = await agentTokens.exchange(key.key, undefined, caller())
    const { tokens } = await newPerson(web, ADA)
    for (const token of ['nonsense', key.key, hubToken.token, tokens.accessToken])
      assert.equal((await call(resource, token)).status, 401)
    const { token } = await agentTokens.exchange(key.key, resource, caller())
    assert.equal((await call(resource, token)).status, 200)
    assert.ok(user.id)
  })

  test('the official MCP client calls a tool with a key as its client credentials', async t => {
    if (!(await installExample(t, 'mcp-server'))) return
    const web = await startRunning(engine, t)
    const { resource, user, key } = await startServer(web, t)
    const robotSettings = {
      KEYWAY_URL: web.url,
      MCP_URL: resource,
      KEYWAY_KEY_ID: key.id,
      KEYWAY_API_KEY: key.key,
    }
    const env = { ...process.env, ...robotSettings }
    const { stdout } = await run(process.execPath, [join(EXAMPLE_FOLDER, 'robot.mjs')], { env })
    assert.equal(stdout.trim(), `${user.id} by ${key.id}`)
  })

  for (const [how, settings] of [
    ['that the operator registered', {}],
    ['that registers itself', { KEYWAY_CLIENT_REGISTRATION: 'true' }],
    ['whose id is the URL of its metadata', WITH_METADATA_DOCUMENTS],
  ] as [string, Record<string, string>][]) {
    test(`the official MCP client ${how} signs a person in with PKCE and calls a tool`, async t => {
      if (!(await installExample(t, 'mcp-server'))) return
      const web = await startRunning(engine, t, settings)
      const { resource } = await startServer(web, t)
      const newApp = { id: 'mcp-client', name: 'An MCP client', redirectUris: [CALLBACK], isPublic: true }
      await web.server.services.apps.register(newApp)
      const documentUrl = settings === WITH_METADATA_DOCUMENTS ? await serveDocument(t) : undefined
      const isPreregistered = Object.keys(settings).length === 0
      const authProvider = newProvider(isPreregistered ? 'mcp-client' : undefined, documentUrl)
      const { Client } = await load('client/index.js')
      const { StreamableHTTPClientTransport } = await load('client/streamableHttp.js')
      const connect = () => {
        const client = new Client({ name: 'test', version: '1.0.0' })
        const transport = new StreamableHTTPClientTransport(new URL(resource), { authProvider })
        return { client, transport, connected: client.connect(transport) }
      }
      const firstConnection = connect()
      await assert.rejects(firstConnection.connected, /Unauthorized/)
      const authorizationUrl = authProvider.authorizationUrl()
      assert.equal(authorizationUrl.searchParams.get('resource'), resource)
      assert.equal(authorizationUrl.searchParams.get('code_challenge_method'), 'S256')
      const browser = await signedInClient(web, ADA)
      await firstConnection.transport.finishAuth(
        await codeOf(browser, authorizationUrl.pathname + authorizationUrl.search),
      )

      const { client, connected } = connect()
      await connected
      const { content } = await client.callTool({ name: 'whoami' })
      const user = await web.server.services.users.find(ADA)
      const clientId = authProvider.clientInformation()!.client_id
      if (documentUrl) assert.equal(clientId, documentUrl)
      assert.equal(content[0].text, `${user.id} by ${clientId}`)
      await client.close()
    })
  }
})

async function startServer(web: WebServer, t: TestContext) {
  const port = await freePort()
  const resource = `http://localhost:${port}/mcp`
  const { apps, apiKeys } = web.server.services
  await apps.register({ id: 'tools', name: 'Tools', audience: resource })
  const { user } = await newPerson(web, ADA)
  const { key, apiKey } = await apiKeys.create(user.id, NEW_KEY, caller())
  const env = { KEYWAY_URL: web.url, KEYWAY_AUDIENCE: resource, PORT: String(port) }
  await startExample(t, ['mcp-server', 'server.mjs'], env)
  return { resource, user, key: { id: apiKey.id, key } }
}

/**
 * Serves the client's metadata over HTTPS, with a certificate that this process trusts until the test ends. Returns the
 * URL.
 */
async function serveDocument(t: TestContext): Promise<string> {
  const { key, certificate: cert } = selfSignedCertificate('localhost')
  const trustedCertificatesBefore = getCACertificates('default')
  setDefaultCACertificates([...trustedCertificatesBefore, cert])
  const server = createServer({ key, cert }, (_, response) => {
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ ...METADATA, client_id: url }))
  })
  await new Promise<void>(resolve => server.listen(0, 'localhost', resolve))
  const url = `https://localhost:${(server.address() as AddressInfo).port}/client.json`
  t.after(() => {
    setDefaultCACertificates(trustedCertificatesBefore)
    server.close()
    server.closeAllConnections()
  })
  return url
}

function call(resource: string, token?: string): Promise<Response> {
  return fetch(resource, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(token && { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
  })
}

// biome-ignore lint/suspicious/noExplicitAny: its types are installed with the example only
function load(path: string): Promise<any> {
  return import(pathToFileURL(join(MCP_SDK, path)).href)
}

/** The MCP SDK's `OAuthClientProvider`: keeps its state in memory, and records the URL instead of opening it. */
function newProvider(clientId: string | undefined, clientMetadataUrl: string | undefined) {
  const state: {
    client?: { client_id: string }
    tokens?: object
    verifier?: string
    authorizationUrl?: URL
  } = {
    client: clientId === undefined ? undefined : { client_id: clientId },
  }
  return {
    redirectUrl: CALLBACK,
    clientMetadata: METADATA,
    clientMetadataUrl,
    clientInformation: () => state.client,
    saveClientInformation(client: { client_id: string }) {
      state.client = client
    },
    tokens: () => state.tokens,
    saveTokens(tokens: object) {
      state.tokens = tokens
    },
    redirectToAuthorization(url: URL) {
      state.authorizationUrl = url
    },
    saveCodeVerifier(verifier: string) {
      state.verifier = verifier
    },
    codeVerifier: () => state.verifier,
    authorizationUrl: () => state.authorizationUrl!,
  }
}
