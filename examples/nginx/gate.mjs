import { createHash, randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import { createRemoteJWKSet, jwtVerify } from 'jose'
import * as client from 'openid-client'

// The gate behind nginx's auth_request: browsers sign in with Keyway, programs send an agent token for this site.
const { KEYWAY_URL = '', KEYWAY_APP_ID = '', KEYWAY_APP_SECRET = '', KEYWAY_AUDIENCE = '' } = process.env
const port = Number(process.env.PORT ?? 4000)
/** nginx's address, as browsers use it. */
const origin = process.env.ORIGIN ?? 'http://localhost:8081'

const keyway = await client.discovery(
  new URL(KEYWAY_URL),
  KEYWAY_APP_ID,
  KEYWAY_APP_SECRET,
  undefined,
  // Plain http is allowed only for trials on one machine.
  { execute: KEYWAY_URL.startsWith('http:') ? [client.allowInsecureRequests] : [] },
)
const jwks = createRemoteJWKSet(new URL(keyway.serverMetadata().jwks_uri))

const SESSION_MS = 8 * 3_600_000
const LOGIN_SECONDS = 600
/**
 * Sessions by the SHA-256 of their cookie, in memory: after a restart Keyway signs people in again without a question,
 * while they are signed in to Keyway.
 */
const sessions = new Map()

const routes = { '/.keyway/check': check, '/.keyway/sign-in': signIn, '/.keyway/callback': callback }

createServer(async (request, response) => {
  const url = new URL(request.url ?? '/', origin)
  try {
    await (routes[url.pathname] ?? notFound)(request, response, url)
  } catch (error) {
    console.error(error.message)
    response.writeHead(400).end('That did not work. Start again.')
  }
}).listen(port, '127.0.0.1', () => console.log(`Listening on http://127.0.0.1:${port}`))

/** Answers nginx with 204 and the user's id, or with 401. */
async function check(request, response) {
  const person = (await personOfToken(request)) ?? personOfCookie(request)
  if (person) response.writeHead(204, { 'X-Person': person }).end()
  else response.writeHead(401).end()
}

async function personOfToken({ headers }) {
  const [, token] = /^Bearer ([^ ]+)$/i.exec(headers.authorization ?? '') ?? []
  if (!token || !KEYWAY_AUDIENCE) return null
  const expected = { issuer: KEYWAY_URL, audience: KEYWAY_AUDIENCE, typ: 'agent_ws' }
  const verified = await jwtVerify(token, jwks, expected).catch(() => null)
  return verified?.payload.sub ?? null
}

function personOfCookie(request) {
  const session = sessions.get(hash(cookieOf(request, 'gate') ?? ''))
  return session && session.until > Date.now() ? session.person : null
}

async function signIn(_, response, url) {
  const checks = {
    pkceCodeVerifier: client.randomPKCECodeVerifier(),
    expectedState: client.randomState(),
    expectedNonce: client.randomNonce(),
    // Everything after `?to=`, since nginx appends the requested path unencoded, with its own query.
    to: url.search.slice('?to='.length) || '/',
  }
  const location = client.buildAuthorizationUrl(keyway, {
    redirect_uri: `${origin}/.keyway/callback`,
    scope: 'openid email',
    code_challenge: await client.calculatePKCECodeChallenge(checks.pkceCodeVerifier),
    code_challenge_method: 'S256',
    state: checks.expectedState,
    nonce: checks.expectedNonce,
  })
  const login = Buffer.from(JSON.stringify(checks)).toString('base64url')
  redirect(response, location.href, [cookie('gate_login', login, LOGIN_SECONDS)])
}

async function callback(request, response, url) {
  const login = cookieOf(request, 'gate_login')
  if (!login) throw new Error('the callback was opened in a browser that did not begin')
  const { to, ...checks } = JSON.parse(Buffer.from(login, 'base64url').toString())
  const tokens = await client.authorizationCodeGrant(keyway, url, { ...checks, idTokenExpected: true })
  const { email, email_verified: isVerified } = tokens.claims()
  if (!email || !isVerified) throw new Error('no verified address')
  for (const [id, { until }] of sessions) if (until <= Date.now()) sessions.delete(id)
  const secret = randomBytes(32).toString('base64url')
  sessions.set(hash(secret), { person: email, until: Date.now() + SESSION_MS })
  // Parsed as a whole and compared by origin, since a path that begins with "//" names another site.
  const page = new URL(to, origin)
  redirect(response, page.origin === origin ? page.href : origin, [
    cookie('gate', secret),
    cookie('gate_login', '', 0),
  ])
}

function notFound(_, response) {
  response.writeHead(404).end()
}

function redirect(response, location, cookies) {
  response.writeHead(303, { Location: location, 'Set-Cookie': cookies, 'Cache-Control': 'no-store' }).end()
}

function cookie(name, value, maxAge) {
  const age = maxAge === undefined ? '' : `; Max-Age=${maxAge}`
  const secure = origin.startsWith('https:') ? '; Secure' : ''
  return `${name}=${value}; Path=/; HttpOnly; SameSite=Lax${secure}${age}`
}

function cookieOf({ headers }, name) {
  const pairs = (headers.cookie ?? '').split('; ').map(pair => pair.split('='))
  return pairs.find(([key]) => key === name)?.[1]
}

function hash(text) {
  return createHash('sha256').update(text).digest('base64url')
}
