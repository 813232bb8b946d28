import { createServer } from 'node:http'
import { Keyway, verifyAgentToken } from '@keyway/sdk'
import { type WebSocket, WebSocketServer } from 'ws'

// A WebSocket server of your own: it accepts Keyway's agent tokens, and lets nobody stay whose key was revoked.
const issuer = process.env.KEYWAY_URL ?? ''
const audience = process.env.KEYWAY_AUDIENCE ?? ''
const app = { id: process.env.KEYWAY_APP_ID ?? '', secret: process.env.KEYWAY_APP_SECRET ?? '' }
const port = Number(process.env.PORT ?? 9000)

interface Guest {
  socket: WebSocket
  keyId: string
  userId: string
}

const guests = new Set<Guest>()
/** What ended in the last 20 minutes: a token lives 15, so an older ending has outlived all tokens. */
const ended = new Set<string>()
/** A hub that has not heard the feed for 10 s cannot know who may stay: it takes nobody new. */
let caughtUpAt = Number.NEGATIVE_INFINITY
const caughtUp = () => performance.now() - caughtUpAt < 10_000

const http = createServer((_, response) => response.writeHead(426).end())
const hub = new WebSocketServer({ noServer: true, maxPayload: 64 * 1024, perMessageDeflate: false })

http.on('upgrade', async (request, socket, head) => {
  socket.on('error', () => socket.destroy())
  try {
    const token = /^Bearer (.+)$/i.exec(request.headers.authorization ?? '')?.[1] ?? ''
    const claims = await verifyAgentToken(token, { issuer, audience })
    if (!caughtUp() || ended.has(claims.key_id) || ended.has(claims.sub))
      throw new Error('revoked, or not known yet')
    hub.handleUpgrade(request, socket, head, ws => welcome(ws, claims.key_id, claims.sub, claims.exp))
  } catch (error) {
    console.log(`refused: ${(error as Error).message}`)
    socket.end('HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
  }
})

function welcome(socket: WebSocket, keyId: string, userId: string, expiresAt: number): void {
  const guest = { socket, keyId, userId }
  guests.add(guest)
  const timer = setTimeout(() => socket.close(4408, 'token_expired'), expiresAt * 1000 - Date.now())
  socket.on('error', () => {})
  socket.on('close', () => {
    clearTimeout(timer)
    guests.delete(guest)
  })
  socket.on('message', data => socket.send(String(data)))
  // The revocation may have come between the check and this line.
  if (ended.has(keyId) || ended.has(userId)) socket.close(4410, 'revoked')
}

async function followRevocations(): Promise<void> {
  const keyway = new Keyway({ url: issuer, app })
  for await (const { kind, subject_id } of keyway.apps.followRevocations({
    onCaughtUp: () => {
      caughtUpAt = performance.now()
    },
  })) {
    if (kind === 'session') continue
    ended.add(subject_id)
    for (const { socket, keyId, userId } of guests) {
      if (keyId === subject_id || userId === subject_id) socket.close(4410, 'revoked')
    }
  }
}

http.listen(port, '127.0.0.1', () => console.log(`Listening on ws://localhost:${port}`))
await followRevocations()
