import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type WebSocket, WebSocketServer } from 'ws'
import { BARE_TOKEN } from './neighbours-protocol.ts'

/**
 * The control of bench/hostile.ts: bare `node:http`, which answers 401 to the attacker and 200 to all others as soon as
 * a request is read, and bare `ws`, which forwards messages. It has no database, no work and no defence: the effect of
 * an attack on others here is what it costs to read the requests with Node alone.
 */

/** The beginning of the attacker's addresses; see attacks.ts. */
const ATTACKER_PREFIX = '127.66.'
const ANSWER = JSON.stringify({ token: BARE_TOKEN })
const REFUSAL = JSON.stringify({ title: 'Unauthorized', status: 401, code: 'unauthorized' })

const http = createServer((request, response) => {
  // A socket that is already closed has no address; only the attacker closes sockets early.
  const isAttacker = (request.socket.remoteAddress ?? ATTACKER_PREFIX).startsWith(ATTACKER_PREFIX)
  request.resume()
  request.on('end', () => {
    const body = isAttacker ? REFUSAL : ANSWER
    response.writeHead(isAttacker ? 401 : 200, {
      'Content-Type': 'application/json',
      'Content-Length': body.length,
    })
    response.end(body)
  })
})
const agents = new WebSocketServer({ noServer: true, perMessageDeflate: false })
const connections = new Map<string, WebSocket>()

http.on('upgrade', (request, socket, head) => {
  socket.on('error', () => socket.destroy())
  if (request.headers.authorization !== `Bearer ${BARE_TOKEN}`) {
    socket.end('HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
    return
  }
  agents.handleUpgrade(request, socket, head, agent => accept(agent))
})
http.listen(0, '127.0.0.1', () => {
  console.log(`listening on ${(http.address() as AddressInfo).port}`)
})

function accept(agent: WebSocket): void {
  const id = String(connections.size)
  connections.set(id, agent)
  agent.on('error', () => agent.terminate())
  agent.send(JSON.stringify({ type: 'ready', connection_id: id }))
  agent.on('message', data => {
    const frame = parseFrame(String(data))
    if (frame?.type === 'send') connections.get(frame.to)?.send(JSON.stringify({ ...frame, type: 'message' }))
  })
}

function parseFrame(text: string): { type: string; to: string } | null {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
