import { once } from 'node:events'
import { Agent, createServer, request } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'

export interface Balancer {
  origin: string
  close(): Promise<void>
}

/** How long a node is excluded after a failed connection, like nginx's `fail_timeout`. */
const EXCLUDED_MS = 500

interface Node {
  hostname: string
  port: string
  excludedUntil: number
}

/** A round-robin HTTP balancer without retries: a node that refuses the connection causes a 502. */
export async function startBalancer(origins: readonly string[]): Promise<Balancer> {
  const agent = new Agent({ keepAlive: true })
  const nodes: Node[] = origins.map(origin => {
    const { hostname, port } = new URL(origin)
    return { hostname, port, excludedUntil: 0 }
  })
  let nextTurn = 0
  /** Both sockets of each upgraded connection, which closing the server would leave open. */
  const upgradedSockets = new Set<Socket>()

  const server = createServer((incoming, outgoing) => {
    const node = pickNode()
    const { hostname, port } = node
    const { method, url: path, headers } = incoming
    const forwardedRequest = request({ hostname, port, agent, method, path, headers }, answer => {
      outgoing.writeHead(answer.statusCode!, answer.headers)
      answer.pipe(outgoing)
      answer.on('error', () => outgoing.destroy())
    })
    forwardedRequest.on('error', () => {
      exclude(node)
      if (outgoing.headersSent) outgoing.destroy()
      else outgoing.writeHead(502).end()
    })
    incoming.pipe(forwardedRequest)
  })
  server.on('upgrade', (incoming, socket, head) => {
    const node = pickNode()
    const upstream = connect(Number(node.port), node.hostname, () => {
      const headers: string[] = []
      for (let n = 0; n < incoming.rawHeaders.length; n += 2)
        headers.push(`${incoming.rawHeaders[n]}: ${incoming.rawHeaders[n + 1]}`)
      upstream.write(`${incoming.method} ${incoming.url} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`)
      upstream.write(head)
      upstream.pipe(socket).pipe(upstream)
    })
    upstream.on('error', () => {
      exclude(node)
      socket.destroy()
    })
    socket.on('error', () => upstream.destroy())
    for (const side of [upstream, socket as Socket]) {
      upgradedSockets.add(side)
      side.on('close', () => upgradedSockets.delete(side))
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      agent.destroy()
      server.closeAllConnections()
      for (const side of upgradedSockets) side.destroy()
      await new Promise(resolve => server.close(resolve))
    },
  }

  function pickNode(): Node {
    const availableNodes = nodes.filter(node => node.excludedUntil <= performance.now())
    const candidates = availableNodes.length > 0 ? availableNodes : nodes
    return candidates[nextTurn++ % candidates.length]!
  }

  function exclude(node: Node): void {
    node.excludedUntil = performance.now() + EXCLUDED_MS
  }
}
