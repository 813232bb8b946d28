import { EventEmitter, once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A line between an agent and the service that can fall silent without anybody being told. */
export interface SilentLine {
  /** The service's address by way of this line. */
  url: string
  /** From now on bytes vanish, both ways, and new connections open into nothing, as behind a dropping firewall. */
  swallow(): void
  /** New connections pass again. Old ones stay silent for ever: whoever kept them has forgotten them. */
  restore(): void
  /** Breaks all connections in the middle of whatever they say; new ones pass. */
  cut(): void
  /** The next connection that somebody opens over this line. */
  opened(): Promise<unknown>
  /** The next request for a connection of WebSocket that vanishes on this line. */
  handshakeLost(): Promise<unknown>
}

const HANDSHAKE = /^GET \/hub /

/** A proxy in front of the service at `target` that swallows packets when told to. */
export async function startSilentLine(
  t: { after(fn: () => Promise<void> | void): void },
  target: string,
): Promise<SilentLine> {
  const { port: targetPort, hostname } = new URL(target)
  const sockets = new Set<Socket>()
  const lost = new EventEmitter()
  let silent = false
  let silences = 0

  const proxy = createServer(client => {
    const bornIn = silences
    const born = !silent
    const passes = () => born && !silent && bornIn === silences
    const server = connect(Number(targetPort), hostname)
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      sockets.add(from)
      from.on('error', () => {})
      from.on('data', chunk => {
        if (passes()) to.write(chunk)
        else if (HANDSHAKE.test(chunk.toString('latin1'))) lost.emit('handshake')
      })
      from.on('close', () => {
        sockets.delete(from)
        if (passes()) to.destroy()
      })
    }
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    proxy.close()
  })
  return {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    swallow() {
      silent = true
      silences++
    },
    restore() {
      silent = false
    },
    cut() {
      for (const socket of sockets) socket.resetAndDestroy()
    },
    opened: () => once(proxy, 'connection'),
    handshakeLost: () => once(lost, 'handshake'),
  }
}
