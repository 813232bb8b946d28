import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'

/** Above 10080, the highest of the bad ports of the Fetch standard, to which `fetch` and browsers refuse to connect. */
const LOWEST_PORT = 10_081
/** The first ephemeral port of most systems. */
const USUAL_FIRST_EPHEMERAL = 32_768
const EPHEMERAL_RANGE = '/proc/sys/net/ipv4/ip_local_port_range'

/** One socket for each port that this process reserved. */
const reservations: Socket[] = []

/**
 * A free port of this machine, for a server that must know its port before it starts, and keep it over restarts. It is
 * below the ephemeral ports, which the system assigns to connections, and reserved for the life of this process by a
 * UDP socket on the same port number, so that no other test process chooses it.
 */
export async function freePort(): Promise<number> {
  const endOfRange = Math.max(firstEphemeral(), 2 * LOWEST_PORT)
  for (;;) {
    const port = LOWEST_PORT + Math.floor(Math.random() * (endOfRange - LOWEST_PORT))
    if ((await reserve(port)) && (await isFree(port))) return port
  }
}

function firstEphemeral(): number {
  try {
    return Number(readFileSync(EPHEMERAL_RANGE, 'utf8').split('\t')[0])
  } catch {
    return USUAL_FIRST_EPHEMERAL
  }
}

/** Reserves the port for this process; false if it is reserved already or cannot be bound. */
async function reserve(port: number): Promise<boolean> {
  const socket = createSocket('udp4').unref()
  const untilBound = once(socket, 'listening')
  socket.bind({ port, address: '127.0.0.1', exclusive: true })
  try {
    await untilBound
    reservations.push(socket)
    return true
  } catch {
    socket.close()
    return false
  }
}

async function isFree(port: number): Promise<boolean> {
  const probe = createServer()
  const listening = once(probe.listen(port, '127.0.0.1'), 'listening')
  const isPortFree = await listening.then(
    () => true,
    () => false,
  )
  if (isPortFree) await new Promise(resolve => probe.close(resolve))
  return isPortFree
}
