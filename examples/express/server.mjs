import { randomUUID } from 'node:crypto'
import express from 'express'
import { createRemoteJWKSet, jwtVerify } from 'jose'
import * as client from 'openid-client'

// An app of your own whose users sign in with Keyway: Express and openid-client.
const { KEYWAY_URL = '', KEYWAY_APP_ID = '', KEYWAY_APP_SECRET = '', PORT = '3000' } = process.env
const origin = process.env.ORIGIN ?? `http://localhost:${PORT}`
const isLocal = KEYWAY_URL.startsWith('http:')

const keyway = await client.discovery(
  new URL(KEYWAY_URL),
  KEYWAY_APP_ID,
  KEYWAY_APP_SECRET,
  undefined,
  // Plain http is allowed only for trials on one machine.
  { execute: isLocal ? [client.allowInsecureRequests] : [] },
)
const metadata = keyway.serverMetadata()
const jwks = createRemoteJWKSet(new URL(metadata.jwks_uri))

/** Sessions of this app by their cookie. A real app keeps them in its database. */
const sessions = new Map()
const LOGIN_SECONDS = 600

const app = express()
app.disable('x-powered-by')

app.get('/', (request, response) => {
  const session = sessionOf(request)
  if (!session) return response.send('<p>Hello, stranger. <a href="/login">Sign in</a></p>')
  response.send(`<p>Hello, ${escapeHtml(session.email)}. <a href="/logout">Sign out</a></p>`)
})

app.get('/login', async (_, response) => {
  const checks = {
    pkceCodeVerifier: client.randomPKCECodeVerifier(),
    expectedState: client.randomState(),
    expectedNonce: client.randomNonce(),
  }
  const url = client.buildAuthorizationUrl(keyway, {
    redirect_uri: `${origin}/callback`,
    scope: 'openid email',
    code_challenge: await client.calculatePKCECodeChallenge(checks.pkceCodeVerifier),
    code_challenge_method: 'S256',
    state: checks.expectedState,
    nonce: checks.expectedNonce,
  })
  // Only the browser that began the sign-in can finish it: its cookie holds the values to check.
  setCookie(response, 'login', Buffer.from(JSON.stringify(checks)).toString('base64url'), LOGIN_SECONDS)
  response.redirect(url.href)
})

app.get('/callback', async (request, response) => {
  const checks = JSON.parse(Buffer.from(cookieOf(request, 'login') ?? 'e30', 'base64url').toString())
  if (!checks.expectedState) return response.status(400).send('Begin at <a href="/login">/login</a>.')
  const tokens = await client.authorizationCodeGrant(keyway, new URL(request.originalUrl, origin), {
    ...checks,
    idTokenExpected: true,
  })
  const { sub, sid, email } = tokens.claims()
  const id = randomUUID()
  sessions.set(id, { sub, sid, email, idToken: tokens.id_token })
  setCookie(response, 'login', '', 0)
  setCookie(response, 'session', id)
  response.redirect('/')
})

/** Ends the session here, and then the one at Keyway (OpenID Connect RP-Initiated Logout). */
app.get('/logout', (request, response) => {
  const session = sessionOf(request)
  sessions.delete(cookieOf(request, 'session'))
  if (!session) return response.redirect('/')
  const url = client.buildEndSessionUrl(keyway, {
    id_token_hint: session.idToken,
    post_logout_redirect_uri: `${origin}/`,
  })
  response.redirect(url.href)
})

/** Keyway calls this when the session ended there, so that it ends here too (Back-Channel Logout 1.0). */
app.post('/backchannel-logout', express.urlencoded({ extended: false }), async (request, response) => {
  const { payload } = await jwtVerify(request.body?.logout_token ?? '', jwks, {
    issuer: metadata.issuer,
    audience: KEYWAY_APP_ID,
    requiredClaims: ['iat', 'jti', 'events'],
    maxTokenAge: '5 minutes',
  })
  if (!payload.events['http://schemas.openid.net/event/backchannel-logout'] || payload.nonce !== undefined)
    return response.status(400).end()
  for (const [id, session] of sessions) {
    const isLoggedOut = payload.sid === undefined ? session.sub === payload.sub : session.sid === payload.sid
    if (isLoggedOut) sessions.delete(id)
  }
  response.status(200).end()
})

// The browser or Keyway sent something invalid: say so without details, and never sign in.
app.use((error, _request, response, _next) => {
  console.error(error.message)
  response.status(400).send('That did not work. <a href="/">Start again</a>.')
})

function sessionOf(request) {
  return sessions.get(cookieOf(request, 'session'))
}

function cookieOf(request, name) {
  const pairs = (request.headers.cookie ?? '').split('; ').map(pair => pair.split('='))
  return pairs.find(([key]) => key === name)?.[1]
}

function setCookie(response, name, value, maxAge) {
  const parts = [`${name}=${value}`, 'Path=/', 'HttpOnly', 'SameSite=Lax']
  if (maxAge !== undefined) parts.push(`Max-Age=${maxAge}`)
  if (origin.startsWith('https:')) parts.push('Secure')
  response.append('Set-Cookie', parts.join('; '))
}

function escapeHtml(text) {
  return text.replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`)
}

app.listen(Number(PORT), '127.0.0.1', () => console.log(`Listening on ${origin}`))
