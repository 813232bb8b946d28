import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { tool } from '../../../../tools/install.ts'
import { openServer } from '../support/http.ts'

const run = promisify(execFile)
const TSC = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc')

/** A client as a project without our SDK would write it. The lines below `@ts-expect-error` must not compile. */
const CLIENT = `
import createClient from 'openapi-fetch'
import type { paths } from './schema.d.ts'

export async function use(baseUrl: string, token: string) {
  const client = createClient<paths>({ baseUrl, headers: { Authorization: \`Bearer \${token}\` } })
  const made = await client.POST('/v1/api-keys', {
    body: { name: 'made', scopes: ['agent:connect'], limits: { requests: [{ limit: 5, per: 'minute' }] } },
  })
  if (!made.data) throw new Error(made.error.detail)
  const listed = await client.GET('/v1/api-keys', { params: { query: { limit: 1, status: 'active' } } })
  // @ts-expect-error: limit is an integer
  await client.GET('/v1/api-keys', { params: { query: { limit: 'one' } } })
  // @ts-expect-error: there is no such status
  await client.GET('/v1/api-keys', { params: { query: { status: 'alive' } } })
  const exchange = await client.POST('/auth/agent-token', { body: { api_key: made.data.key } })
  const seconds: number | undefined = exchange.data?.expires_in
  const form = await client.POST('/oauth/token', {
    body: { grant_type: 'client_credentials', client_id: made.data.id, client_secret: made.data.key },
    headers: { Authorization: null, 'Content-Type': 'application/x-www-form-urlencoded' },
    bodySerializer: body => new URLSearchParams(body as Record<string, string>),
  })
  const refused = await client.GET('/v1/api-keys/{key_id}', { params: { path: { key_id: 'nothing' } } })
  const code: string | undefined = refused.error?.code
  return { names: listed.data?.data.map(key => key.name), seconds, type: form.data?.token_type, code }
}
`

test('openapi-typescript with openapi-fetch compiles against the document in strict mode, and calls the API', async t => {
  const generator = await tool(t, 'openapi-typescript')
  const library = await tool(t, 'openapi-fetch')
  if (!generator || !library) return
  const server = await openServer('sqlite', t)
  const folder = mkdtempSync(join(tmpdir(), 'keyway-openapi-'))
  t.after(() => rmSync(folder, { recursive: true }))
  symlinkSync(dirname(library), join(folder, 'node_modules'))
  const { text } = await server.get('/openapi.json')
  writeFileSync(join(folder, 'openapi.json'), text)
  writeFileSync(join(folder, 'client.mts'), CLIENT)

  await run(process.execPath, [generator, 'openapi.json', '-o', 'schema.d.ts'], { cwd: folder })
  const strictOptions = ['--strict', '--noUncheckedIndexedAccess', '--exactOptionalPropertyTypes']
  const options = [
    '--noEmit',
    ...strictOptions,
    '--module',
    'nodenext',
    '--target',
    'esnext',
    '--lib',
    'esnext,dom',
  ]
  await run(process.execPath, [TSC, ...options, '--allowImportingTsExtensions', 'client.mts'], {
    cwd: folder,
  }).catch((error: { stdout: string }) => assert.fail(error.stdout))

  const { use } = await import(pathToFileURL(join(folder, 'client.mts')).href)
  const { tokens } = await server.signIn('ada@example.com')
  assert.deepEqual(await use(server.url, tokens.accessToken), {
    names: ['made'],
    seconds: 900,
    type: 'Bearer',
    code: 'not_found',
  })
})
