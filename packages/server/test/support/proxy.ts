import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { TestContext } from 'node:test'

/** A TCP proxy between the service and a server it uses, with which a test injects network faults. */
export interface FaultProxy {
  port: number
  /** Resets all connections, and forwards new ones to another server. */
  forwardTo(url: string): void
  /** The URL with the proxy's host and port. For faults that the service notices by a timeout, see `withOwnTimeouts`. */
  through(url: string): string
  /** Delays every chunk in both directions by `ms` milliseconds. */
  delay(ms: number): void
  /** Resets all connections, and new ones at once, like a server that is down. */
  cut(): void
  /** Keeps and accepts connections but forwards nothing, like a firewall that drops packets. */
  blackHole(): void
  /** Resets all connections, and answers new ones with invalid bytes. */
  garble(): void
  heal(): void
  /** Resets the connections of the next `count` COMMITs, before PostgreSQL receives them or after it answered. */
  cutCommits(count: number, when: 'unreceived' | 'unanswered'): void
  readonly commitsCut: number
  /** Answers matching statements with an error instead of forwarding them; with null, none. */
  refuse(statements: RegExp | null): void
  readonly refused: number
  readonly connections: number
  close(): Promise<void>
}

/** A COMMIT in PostgreSQL's protocol: `Q`, the length, `commit`. */
const COMMIT = Buffer.from('Q\0\0\0\x0bcommit\0', 'latin1')

const GARBAGE = Buffer.from(Array.from({ length: 4096 }, (_, n) => (n * 151) % 256))

export async function startProxy(target: string, t?: TestContext): Promise<FaultProxy> {
  let upstream = new URL(target)
  const pairs = new Set<{ client: Socket; server: Socket }>()
  let mode: 'open' | 'cut' | 'hole' | 'garbage' = 'open'
  let delay = 0
  let commitsToCut = 0
  let cutWhen: 'unreceived' | 'unanswered' = 'unreceived'
  let commitsCut = 0
  let refusalPattern: RegExp | null = null
  let refusedCount = 0

  const listener = createServer(client => {
    client.on('error', () => client.destroy())
    if (mode === 'cut') return void resetSocket(client)
    if (mode === 'garbage') return void client.end(GARBAGE)
    const server = connect(Number(upstream.port), upstream.hostname)
    server.on('error', () => server.destroy())
    const pair = { client, server }
    pairs.add(pair)
    const closePair = () => {
      pairs.delete(pair)
      client.destroy()
      server.destroy()
    }
    client.on('data', (chunk: Buffer) => fromClient(pair, chunk))
    server.on('data', (chunk: Buffer) => forward(client, chunk))
    // A black hole does not forward the end of a connection either.
    client.on('close', () => mode !== 'hole' && closePair())
    server.on('close', () => mode !== 'hole' && closePair())
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address() as AddressInfo

  function forward(to: Socket, chunk: Buffer): void {
    if (mode !== 'open') return
    if (delay > 0) setTimeout(() => to.writable && to.write(chunk), delay)
    else if (to.writable) to.write(chunk)
  }

  function fromClient({ client, server }: { client: Socket; server: Socket }, chunk: Buffer): void {
    if (mode !== 'open') return
    if (refusalPattern?.test(chunk.toString('latin1'))) {
      refusedCount++
      client.write(refusal())
      return
    }
    if (commitsToCut > 0 && chunk.includes(COMMIT)) {
      commitsToCut--
      commitsCut++
      if (cutWhen === 'unanswered') {
        server.removeAllListeners('data')
        // The first byte of the answer has arrived: the transaction is committed, and the client does not learn of it.
        server.once('data', () => resetSocket(client))
        server.write(chunk)
      } else {
        resetSocket(client)
        resetSocket(server)
      }
      return
    }
    forward(server, chunk)
  }

  const cutAll = () => {
    for (const { client, server } of pairs) {
      resetSocket(client)
      resetSocket(server)
    }
    pairs.clear()
  }
  const proxy: FaultProxy = {
    port,
    through(url) {
      const proxiedUrl = new URL(url)
      proxiedUrl.hostname = '127.0.0.1'
      proxiedUrl.port = String(port)
      return proxiedUrl.href
    },
    forwardTo(url) {
      upstream = new URL(url)
      cutAll()
    },
    delay(ms) {
      delay = ms
    },
    cut() {
      mode = 'cut'
      cutAll()
    },
    blackHole() {
      mode = 'hole'
    },
    garble() {
      mode = 'garbage'
      cutAll()
    },
    heal() {
      // Bytes were lost, so the old connections are unusable.
      if (mode === 'hole') cutAll()
      mode = 'open'
      delay = 0
      commitsToCut = 0
    },
    cutCommits(count, when) {
      commitsToCut = count
      cutWhen = when
    },
    get commitsCut() {
      return commitsCut
    },
    refuse(statements) {
      refusalPattern = statements
    },
    get refused() {
      return refusedCount
    },
    get connections() {
      return pairs.size
    },
    async close() {
      cutAll()
      if (listener.listening) await new Promise(resolve => listener.close(resolve))
    },
  }
  t?.after(() => proxy.close())
  return proxy
}

/**
 * Resets a connection, like a host that crashes. A socket that has already sent FIN is destroyed instead: it would not
 * be reset, and its handle would keep the process alive.
 */
function resetSocket(socket: Socket): void {
  if (socket.connecting || socket.writableEnded) socket.destroy()
  else if (!socket.destroyed) socket.resetAndDestroy()
}

/** ErrorResponse and ReadyForQuery (PostgreSQL's protocol, section 55.7): `feature_not_supported`. */
function refusal(): Buffer {
  const fields = Buffer.from('SERROR\0VERROR\0C0A000\0Mthis engine does not have that\0\0', 'latin1')
  const head = Buffer.alloc(5)
  head.write('E', 0, 'latin1')
  head.writeInt32BE(fields.length + 4, 1)
  return Buffer.concat([head, fields, Buffer.from('Z\0\0\0\x05I', 'latin1')])
}
