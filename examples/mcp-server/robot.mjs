import { ClientCredentialsProvider } from '@modelcontextprotocol/sdk/client/auth-extensions.js'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'

// An unattended program: the official MCP client with an API key of Keyway as its client credentials.
const { KEYWAY_URL = '', KEYWAY_KEY_ID = '', KEYWAY_API_KEY = '' } = process.env
const server = new URL(process.env.MCP_URL ?? 'http://localhost:9100/mcp')

const authProvider = new ClientCredentialsProvider({
  clientId: KEYWAY_KEY_ID,
  clientSecret: KEYWAY_API_KEY,
  // The key is sent to this service only, whatever authorization server the MCP server names.
  expectedIssuer: KEYWAY_URL,
})
const client = new Client({ name: 'example-robot', version: '1.0.0' })
await client.connect(new StreamableHTTPClientTransport(server, { authProvider }))
const { content } = await client.callTool({ name: 'whoami' })
console.log(content[0].text)
await client.close()
