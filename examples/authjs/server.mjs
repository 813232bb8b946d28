import { ExpressAuth, getSession } from '@auth/express'
import express from 'express'

// Sign-in with Keyway by Auth.js, here with Express. With Next.js or SvelteKit the provider is the same object.
const { KEYWAY_URL, KEYWAY_APP_ID, KEYWAY_APP_SECRET, AUTH_SECRET, PORT = '3000' } = process.env

const config = {
  basePath: '/auth',
  providers: [
    {
      id: 'keyway',
      name: 'Keyway',
      type: 'oidc',
      issuer: KEYWAY_URL,
      clientId: KEYWAY_APP_ID,
      clientSecret: KEYWAY_APP_SECRET,
      checks: ['pkce', 'state', 'nonce'],
      authorization: { params: { scope: 'openid email profile' } },
    },
  ],
  secret: AUTH_SECRET,
  // Trusts the Host header as this server's address, since it listens on this machine only.
  trustHost: true,
}

const app = express()
app.disable('x-powered-by')
app.use('/auth', ExpressAuth(config))
app.get('/', async (request, response) => {
  const session = await getSession(request, config)
  const email = session?.user?.email
  response.send(email ? `<p>Hello, ${escapeHtml(email)}.</p>` : '<p><a href="/auth/signin">Sign in</a></p>')
})

function escapeHtml(text) {
  return text.replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`)
}

app.listen(Number(PORT), '127.0.0.1', () => console.log(`Listening on http://localhost:${PORT}`))
