import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { apiKey } from '@better-auth/api-key'
import { betterAuth } from 'better-auth'
import { getMigrations } from 'better-auth/db/migration'

/**
 * better-auth's API keys behind a minimal HTTP server: POST {"key"} verifies a key, counts the request against its rate
 * limit, and decrements its remaining uses. On SQLite with the same durability as Keyway's. Writes its keys into
 * keys.json.
 */

const [folder, count] = process.argv.slice(2)
/** A limit that is never reached, since only the counting is measured. */
const NEVER_REACHED = 1_000_000_000

const database = new DatabaseSync(join(folder, 'better-auth.db'))
database.exec('pragma journal_mode = wal; pragma synchronous = full')
const options = {
  database,
  secret: 'the secret of a bench, which guards nothing',
  baseURL: 'http://localhost',
  emailAndPassword: { enabled: true },
  telemetry: { enabled: false },
  logger: { disabled: true },
  plugins: [apiKey()],
}
await (await getMigrations(options)).runMigrations()
const auth = betterAuth(options)
const signUpBody = { email: 'ada@example.com', password: 'correct horse battery staple', name: 'Ada' }
const { user } = await auth.api.signUpEmail({ body: signUpBody })

const keys = []
for (let n = 0; n < Number(count); n++) {
  const limits = {
    remaining: NEVER_REACHED,
    rateLimitEnabled: true,
    rateLimitTimeWindow: 60_000,
    rateLimitMax: NEVER_REACHED,
  }
  keys.push((await auth.api.createApiKey({ body: { userId: user.id, ...limits } })).key)
}
writeFileSync(join(folder, 'keys.json'), JSON.stringify(keys))

const server = createServer(async (request, response) => {
  let text = ''
  for await (const part of request) text += part
  const { valid } = await auth.api.verifyApiKey({ body: { key: JSON.parse(text).key } })
  const body = JSON.stringify({ valid })
  response.writeHead(valid ? 200 : 401, {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
  })
  response.end(body)
})
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`))
