import { InvalidTokenError } from '@modelcontextprotocol/sdk/server/auth/errors.js'
import { requireBearerAuth } from '@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js'
import { createMcpExpressApp } from '@modelcontextprotocol/sdk/server/express.js'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { createRemoteJWKSet, jwtVerify } from 'jose'

// An MCP server that Keyway protects: it accepts tokens for itself only, and says where clients get them (RFC 9728).
const { KEYWAY_URL = '', PORT = '9100' } = process.env
/** The audience of the tokens: registered with `keyway apps add … --audience`. */
const resource = process.env.KEYWAY_AUDIENCE ?? `http://localhost:${PORT}/mcp`
const metadataUrl = new URL('/.well-known/oauth-protected-resource/mcp', resource).href
const jwks = createRemoteJWKSet(new URL('/.well-known/jwks.json', KEYWAY_URL))

const app = createMcpExpressApp({ host: 'localhost' })

app.get('/.well-known/oauth-protected-resource/mcp', (_, response) => {
  response.json({
    resource,
    resource_name: 'Example MCP server',
    authorization_servers: [KEYWAY_URL],
    bearer_methods_supported: ['header'],
  })
})

const authenticate = requireBearerAuth({
  verifier: { verifyAccessToken },
  expectedResource: resource,
  resourceMetadataUrl: metadataUrl,
})

/**
 * Accepts the token of a person's client (`at+jwt`) or of a key (`agent_ws`); verifies signature, issuer, audience and
 * times.
 */
async function verifyAccessToken(token) {
  const expected = { issuer: KEYWAY_URL, audience: resource, requiredClaims: ['exp', 'sub'] }
  const { payload, protectedHeader } = await jwtVerify(token, jwks, expected).catch(() => {
    throw new InvalidTokenError('The token is not valid for this server')
  })
  if (protectedHeader.typ !== 'at+jwt' && protectedHeader.typ !== 'agent_ws')
    throw new InvalidTokenError('Not an access token')
  return {
    token,
    clientId: payload.client_id ?? payload.key_id,
    scopes: payload.scope?.split(' ') ?? [],
    expiresAt: payload.exp,
    resource: new URL(resource),
    extra: { person: payload.sub },
  }
}

app.post('/mcp', authenticate, async (request, response) => {
  // Stateless: each request gets a server of its own.
  const server = createServer()
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined })
  response.on('close', () => {
    transport.close()
    server.close()
  })
  await server.connect(transport)
  await transport.handleRequest(request, response, request.body)
})

function createServer() {
  const server = new McpServer({ name: 'example', version: '1.0.0' })
  const described = { description: 'Says for whom this client acts' }
  server.registerTool('whoami', described, async ({ authInfo }) => ({
    content: [{ type: 'text', text: `${authInfo.extra.person} by ${authInfo.clientId}` }],
  }))
  return server
}

app.listen(Number(PORT), '127.0.0.1', () => console.log(`Listening on ${resource}`))
