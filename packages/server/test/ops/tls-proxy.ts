import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { connect } from 'node:net'
import type { TestContext } from 'node:test'

/**
 * A minimal reverse proxy like nginx or Caddy: terminates TLS, sets `X-Forwarded-For` to the peer, and forwards
 * upgrades.
 */
export async function startTlsProxy(
  t: Pick<TestContext, 'after'>,
  certificate: { key: string; cert: string },
  target: () => number,
): Promise<{ port: number }> {
  const forwardedHeaders = (incoming: IncomingMessage) => ({
    ...incoming.headers,
    'x-forwarded-for': incoming.socket.remoteAddress,
  })
  const server = createServer(certificate, (incoming, outgoing) => {
    const { method, url } = incoming
    const upstreamRequest = request(
      { port: target(), host: '127.0.0.1', method, path: url, headers: forwardedHeaders(incoming) },
      answer => {
        const headers = { ...answer.headers, 'strict-transport-security': 'max-age=63072000' }
        outgoing.writeHead(answer.statusCode!, headers)
        answer.pipe(outgoing)
      },
    )
    upstreamRequest.on('error', () => outgoing.writeHead(502).end())
    incoming.pipe(upstreamRequest)
  })
  server.on('upgrade', (incoming, client, head) => {
    const service = connect(target(), '127.0.0.1')
    const lines = Object.entries(forwardedHeaders(incoming)).map(([name, value]) => `${name}: ${value}`)
    service.write(`GET ${incoming.url} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`)
    service.write(head)
    service.pipe(client).pipe(service)
    for (const socket of [service, client]) socket.on('error', () => socket.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port }
}
