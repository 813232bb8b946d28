import { EventEmitter, once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A TCP proxy between an agent and the service that can drop packets silently. */
export interface DroppingProxy {
  /** The service's URL through the proxy. */
  url: string
  /** Drops all bytes in both directions, also of new connections, like a firewall that drops packets. */
  dropPackets(): void
  /** Forwards new connections again. Old ones remain dead, as if a NAT had lost their state. */
  restore(): void
  /** Resets all connections at once; new ones are forwarded. */
  resetAll(): void
  /** Resolves when the next connection is opened. */
  opened(): Promise<unknown>
  /** Resolves when the next WebSocket handshake is dropped. */
  handshakeLost(): Promise<unknown>
}

const HANDSHAKE = /^GET \/hub /

/** Starts a proxy in front of the service at `target` that can drop packets. */
export async function startDroppingProxy(
  t: { after(fn: () => Promise<void> | void): void },
  target: string,
): Promise<DroppingProxy> {
  const { port: targetPort, hostname } = new URL(target)
  const sockets = new Set<Socket>()
  const lossEmitter = new EventEmitter()
  let isDropping = false
  let outageCount = 0

  const proxy = createServer(client => {
    const outageCountAtOpening = outageCount
    const openedWhileForwarding = !isDropping
    const isForwarded = () => openedWhileForwarding && !isDropping && outageCountAtOpening === outageCount
    const server = connect(Number(targetPort), hostname)
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      sockets.add(from)
      from.on('error', () => {})
      from.on('data', chunk => {
        if (isForwarded()) to.write(chunk)
        else if (HANDSHAKE.test(chunk.toString('latin1'))) lossEmitter.emit('handshake')
      })
      from.on('close', () => {
        sockets.delete(from)
        if (isForwarded()) to.destroy()
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
    dropPackets() {
      isDropping = true
      outageCount++
    },
    restore() {
      isDropping = false
    },
    resetAll() {
      for (const socket of sockets) socket.resetAndDestroy()
    },
    opened: () => once(proxy, 'connection'),
    handshakeLost: () => once(lossEmitter, 'handshake'),
  }
}
