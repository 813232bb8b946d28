import { once } from 'node:events'
import { Agent, createServer, request } from 'node:http'
import { type AddressInfo, connect } from 'node:net'

export interface Balancer {
  origin: string
  close(): Promise<void>
}

/** Gives each request to the next node in turn, as the simplest load balancer does: no health checks, no retries. */
export async function startBalancer(origins: readonly string[]): Promise<Balancer> {
  const agent = new Agent({ keepAlive: true })
  let turn = 0
  const next = () => new URL(origins[turn++ % origins.length]!)
  const server = createServer((incoming, outgoing) => {
    const { hostname, port } = next()
    const options = { hostname, port, agent, method: incoming.method, path: incoming.url }
    const passed = request({ ...options, headers: incoming.headers }, answer => {
      outgoing.writeHead(answer.statusCode!, answer.headers)
      answer.pipe(outgoing)
      answer.on('error', () => outgoing.destroy())
    })
    passed.on('error', () => {
      if (outgoing.headersSent) return void outgoing.destroy()
      outgoing.writeHead(502).end()
    })
    incoming.pipe(passed)
  })
  server.on('upgrade', (incoming, socket, head) => {
    const { hostname, port } = next()
    const node = connect(Number(port), hostname, () => {
      const headers: string[] = []
      for (let n = 0; n < incoming.rawHeaders.length; n += 2)
        headers.push(`${incoming.rawHeaders[n]}: ${incoming.rawHeaders[n + 1]}`)
      node.write(`${incoming.method} ${incoming.url} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`)
      node.write(head)
      node.pipe(socket).pipe(node)
    })
    node.on('error', () => socket.destroy())
    socket.on('error', () => node.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      agent.destroy()
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}
