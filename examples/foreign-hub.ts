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
  /** Seconds. */
  issuedAt: number
}

const guests = new Set<Guest>()
/** Keys and users that ended, and when (ms). Kept for 20 minutes: a token lives 15, so an older ending has outlived all. */
const ended = new Map<string, number>()
const KEPT_FOR = 20 * 60_000
/** A token of the same second may be from before. Later ones are from after: an account was suspended and is active again. */
const isEnded = ({ keyId, userId, issuedAt }: Omit<Guest, 'socket'>) =>
  [keyId, userId].some(id => (ended.get(id) ?? 0) >= issuedAt * 1000)
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
    const bearer = { keyId: claims.key_id, userId: claims.sub, issuedAt: claims.iat }
    if (!caughtUp() || isEnded(bearer)) throw new Error('revoked, or not known yet')
    hub.handleUpgrade(request, socket, head, ws => welcome({ socket: ws, ...bearer }, claims.exp))
  } catch (error) {
    console.log(`refused: ${(error as Error).message}`)
    socket.end('HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
  }
})

function welcome(guest: Guest, expiresAt: number): void {
  const { socket } = guest
  guests.add(guest)
  const timer = setTimeout(() => socket.close(4408, 'token_expired'), expiresAt * 1000 - Date.now())
  socket.on('error', () => {})
  socket.on('close', () => {
    clearTimeout(timer)
    guests.delete(guest)
  })
  socket.on('message', data => socket.send(String(data)))
  // The revocation may have come between the check and this line.
  if (isEnded(guest)) socket.close(4410, 'revoked')
}

async function followRevocations(): Promise<void> {
  const keyway = new Keyway({ url: issuer, app })
  for await (const { kind, subject_id, at } of keyway.apps.followRevocations({
    onCaughtUp: () => {
      caughtUpAt = performance.now()
    },
  })) {
    if (kind === 'session') continue
    for (const [id, endedAt] of ended) if (endedAt < Date.now() - KEPT_FOR) ended.delete(id)
    ended.set(subject_id, Math.max(ended.get(subject_id) ?? 0, Date.parse(at)))
    for (const guest of guests) if (isEnded(guest)) guest.socket.close(4410, 'revoked')
  }
}

http.listen(port, '127.0.0.1', () => console.log(`Listening on ws://localhost:${port}`))
await followRevocations()
