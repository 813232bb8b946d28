import { createServer } from 'node:http'
import { Keyway, verifyAgentToken } from '@keyway/sdk'
import { type WebSocket, WebSocketServer } from 'ws'

// A WebSocket server of your own: it accepts Keyway's agent tokens, and closes the connections of revoked keys.
const issuer = process.env.KEYWAY_URL ?? ''
const audience = process.env.KEYWAY_AUDIENCE ?? ''
const app = { id: process.env.KEYWAY_APP_ID ?? '', secret: process.env.KEYWAY_APP_SECRET ?? '' }
const port = Number(process.env.PORT ?? 9000)

interface Client {
  socket: WebSocket
  keyId: string
  userId: string
  /** In seconds since 1970. */
  issuedAt: number
}

const clients = new Set<Client>()
/** Ended keys and users, with the time in milliseconds. Kept for 20 minutes, longer than the 15 minutes of a token. */
const ended = new Map<string, number>()
const ENDINGS_KEPT_MS = 20 * 60_000
/** Tokens that were issued after the end are valid: the account was suspended, and then activated again. */
const isEnded = ({ keyId, userId, issuedAt }: Omit<Client, 'socket'>) =>
  [keyId, userId].some(id => (ended.get(id) ?? 0) >= issuedAt * 1000)
/** If the feed was not read for 10 s, revocations may be missing, so no connection is accepted. */
let caughtUpAt = Number.NEGATIVE_INFINITY
const isFeedCurrent = () => performance.now() - caughtUpAt < 10_000

const http = createServer((_, response) => response.writeHead(426).end())
const hub = new WebSocketServer({ noServer: true, maxPayload: 64 * 1024, perMessageDeflate: false })

http.on('upgrade', async (request, socket, head) => {
  socket.on('error', () => socket.destroy())
  try {
    const token = /^Bearer (.+)$/i.exec(request.headers.authorization ?? '')?.[1] ?? ''
    const claims = await verifyAgentToken(token, { issuer, audience })
    const bearer = { keyId: claims.key_id, userId: claims.sub, issuedAt: claims.iat }
    if (!isFeedCurrent() || isEnded(bearer)) throw new Error('revoked, or the feed was not read')
    hub.handleUpgrade(request, socket, head, ws => accept({ socket: ws, ...bearer }, claims.exp))
  } catch (error) {
    console.log(`refused: ${(error as Error).message}`)
    socket.end('HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
  }
})

function accept(client: Client, expiresAt: number): void {
  const { socket } = client
  clients.add(client)
  const timer = setTimeout(() => socket.close(4408, 'token_expired'), expiresAt * 1000 - Date.now())
  socket.on('error', () => {})
  socket.on('close', () => {
    clearTimeout(timer)
    clients.delete(client)
  })
  socket.on('message', data => socket.send(String(data)))
  // The key may have been revoked since the check.
  if (isEnded(client)) socket.close(4410, 'revoked')
}

async function followRevocations(): Promise<void> {
  const keyway = new Keyway({ url: issuer, app })
  for await (const { kind, subject_id, at } of keyway.apps.followRevocations({
    onCaughtUp: () => {
      caughtUpAt = performance.now()
    },
  })) {
    if (kind === 'session') continue
    for (const [id, endedAt] of ended) if (endedAt < Date.now() - ENDINGS_KEPT_MS) ended.delete(id)
    ended.set(subject_id, Math.max(ended.get(subject_id) ?? 0, Date.parse(at)))
    for (const client of clients) if (isEnded(client)) client.socket.close(4410, 'revoked')
  }
}

http.listen(port, '127.0.0.1', () => console.log(`Listening on ws://localhost:${port}`))
await followRevocations()
