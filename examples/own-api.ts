import { createServer, type IncomingMessage } from 'node:http'
import { Keyway, verifyAgentToken } from '@keyway/sdk'

// An HTTP API of your own whose clients present an agent token, which is verified offline, or the API key itself, which
// is verified by a call to Keyway. Either way a revoked key is refused at once.
const issuer = process.env.KEYWAY_URL ?? ''
const audience = process.env.KEYWAY_AUDIENCE ?? ''
const app = { id: process.env.KEYWAY_APP_ID ?? '', secret: process.env.KEYWAY_APP_SECRET ?? '' }
const port = Number(process.env.PORT ?? 9000)
const keyway = new Keyway({ url: issuer, app })

/** Who sent a request, and its scopes; without scopes it may do everything. */
interface Bearer {
  personId: string
  keyId: string
  scopes: readonly string[]
}

/** Ended keys and users, with the time in milliseconds. Kept for longer than the 15 minutes of a token. */
const ended = new Map<string, number>()
const ENDINGS_KEPT_MS = 20 * 60_000
/** If the feed was not read for 10 s, revocations may be missing: tokens are refused, keys are still verified. */
let caughtUpAt = Number.NEGATIVE_INFINITY

const server = createServer(async (request, response) => {
  const bearer = await authenticate(request).catch(error => {
    console.log(`refused: ${(error as Error).message}`)
    return null
  })
  const [status, body] = answerTo(bearer, request.method ?? '')
  const headers = status === 401 ? { 'WWW-Authenticate': 'Bearer' } : {}
  response.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(JSON.stringify(body))
})

/**
 * The scopes `notes:read` and `notes:write` belong to this API: Keyway stores them with keys, and grants nothing for
 * them.
 */
function answerTo(bearer: Bearer | null, method: string): [status: number, body: object] {
  if (!bearer) return [401, { error: 'invalid_token' }]
  const scope = method === 'GET' ? 'notes:read' : 'notes:write'
  if (bearer.scopes.length > 0 && !bearer.scopes.includes(scope)) {
    return [403, { error: 'insufficient_scope', scope }]
  }
  return [200, { person: bearer.personId, key: bearer.keyId }]
}

async function authenticate({ headers }: IncomingMessage): Promise<Bearer | null> {
  const [, credential = ''] = /^Bearer ([^ ]+)$/i.exec(headers.authorization ?? '') ?? []
  return credential.startsWith('svc_') ? await verifyByCall(credential) : await verifyOffline(credential)
}

/** Calls Keyway for each request, so the answer is never stale. */
async function verifyByCall(key: string): Promise<Bearer | null> {
  const verified = await keyway.apps.verifyKey(key)
  if (!verified.active) return null
  return { personId: verified.sub, keyId: verified.key_id, scopes: scopesOf(verified.scope) }
}

/** Makes no call: the signature is verified with cached public keys, and the feed reports revocations. */
async function verifyOffline(token: string): Promise<Bearer | null> {
  const { sub, key_id, scope, iat } = await verifyAgentToken(token, { issuer, audience })
  const isCurrent = performance.now() - caughtUpAt < 10_000
  if (!isCurrent) throw new Error('the feed of revocations was not read')
  // A token that was issued after the end is valid: the account was suspended, and then activated again.
  const isEnded = [key_id, sub].some(id => (ended.get(id) ?? 0) >= iat * 1000)
  return isEnded ? null : { personId: sub, keyId: key_id, scopes: scopesOf(scope) }
}

function scopesOf(scope: string | undefined): string[] {
  return scope ? scope.split(' ') : []
}

async function followRevocations(): Promise<void> {
  const onCaughtUp = () => {
    caughtUpAt = performance.now()
  }
  for await (const { subject_id, at } of keyway.apps.followRevocations({ onCaughtUp })) {
    for (const [id, endedAt] of ended) if (endedAt < Date.now() - ENDINGS_KEPT_MS) ended.delete(id)
    ended.set(subject_id, Math.max(ended.get(subject_id) ?? 0, Date.parse(at)))
  }
}

server.listen(port, '127.0.0.1', () => console.log(`Listening on http://localhost:${port}`))
await followRevocations()
