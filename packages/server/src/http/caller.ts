import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Log } from '../log.ts'
import { type Caller, canonicalAddress, isLoopback, networkMatcher, networkOf } from '../network.ts'
import { createProxyWatch, isPrivateAddress } from './proxy-watch.ts'

const MAX_CLIENT_LENGTH = 200
/** Used for peers without an address (Unix sockets), so that limits apply to them too. */
const NO_ADDRESS = '0.0.0.0'
const FORWARDING_HEADERS = ['x-forwarded-for', 'forwarded', 'x-real-ip'] as const
/** Headers that proxies and tunnels add, including those without a client address. */
const PROXY_HEADER =
  /^(?:x-forwarded|x-original-|forwarded$|via$|x-real-ip$|cf-|true-client-ip$|x-client-ip$|fastly-)/

export interface Callers {
  /** The client: the socket's peer, or the address that a trusted proxy reports. */
  of(incoming: IncomingMessage): Caller
  /**
   * The network of a connection's peer. Null for a proxy, whose connections carry requests of many clients: a trusted
   * one, or a peer in a private network that forwards requests but is not in KEYWAY_TRUSTED_PROXIES.
   */
  peerNetwork(socket: Socket): string | null
  /** Whether the listening address, the peer and Host are loopback and no proxy header is present. */
  isLocal(incoming: IncomingMessage): boolean
  /**
   * A mistake in KEYWAY_TRUSTED_PROXIES that recent requests reveal, or null. Public in `/readyz`: clients can neither
   * cause it nor learn addresses from it.
   */
  readonly proxyMistake: string | null
}

/**
 * @param host the listening address
 * @param trustedProxies CIDRs of peers whose `X-Forwarded-For` is used. No other header is ever used, since a client
 *   that connects directly can set all of them.
 */
export function createCallers({
  trustedProxies,
  host,
  log,
  now,
}: {
  trustedProxies: readonly string[]
  host: string
  log: Log
  now?: () => number
}): Callers {
  const isTrusted = networkMatcher(trustedProxies)
  const proxyWatch = createProxyWatch(log, now)
  /** The parsed peer of each connection, since a connection has many requests. */
  const peers = new WeakMap<Socket, Peer>()

  return {
    of(incoming) {
      const peer = peerOf(incoming.socket)
      const address = addressBehind(peer, incoming)
      const network = address === peer.address ? peer.network : networkOf(address)
      return { address, network, client: clientOf(incoming.headers['user-agent']) }
    },
    peerNetwork(socket) {
      const { address, isTrusted, network } = peerOf(socket)
      return isTrusted || proxyWatch.forwards(address) ? null : network
    },
    isLocal(incoming) {
      const name = URL.parse(`http://${incoming.headers.host ?? ''}`)?.hostname ?? ''
      const isForwarded = Object.keys(incoming.headers).some(header => PROXY_HEADER.test(header))
      return (
        !isForwarded &&
        isLoopbackName(host) &&
        isLoopback(peerOf(incoming.socket).address) &&
        isLoopbackName(name)
      )
    },
    get proxyMistake() {
      return proxyWatch.mistake
    },
  }

  function peerOf(socket: Socket): Peer {
    let peer = peers.get(socket)
    if (!peer) {
      const address = canonicalAddress(socket.remoteAddress ?? NO_ADDRESS) ?? NO_ADDRESS
      const isPrivate = isPrivateAddress(address)
      peer = { address, network: networkOf(address), isTrusted: isTrusted(address), isPrivate }
      peers.set(socket, peer)
    }
    return peer
  }

  function addressBehind(peer: Peer, { headers }: IncomingMessage): string {
    if (peer.isTrusted) return rightmostUntrusted(peer.address, headers['x-forwarded-for'])
    proxyWatch.count(
      peer,
      FORWARDING_HEADERS.some(name => headers[name] !== undefined),
    )
    return peer.address
  }

  /**
   * The last address of the list that is not trusted; the first address if all are trusted. At an invalid entry the
   * search ends with the address after that entry; with an empty list, or if the last entry is invalid, the result is
   * `peer`.
   */
  function rightmostUntrusted(peer: string, forwardedFor: string | string[] | undefined): string {
    let address = peer
    for (const hop of String(forwardedFor ?? '')
      .split(',')
      .reverse()) {
      const hopIp = hopAddress(hop)
      if (!hopIp) return address
      address = hopIp
      if (!isTrusted(hopIp)) return address
    }
    return address
  }
}

/**
 * Parses `203.0.113.7`, `203.0.113.7:4711`, `[2001:db8::1]:4711` or `2001:db8::1`, quoted or not; null for anything
 * else.
 */
function hopAddress(text: string): string | null {
  const hop = text.trim().replace(/^"|"$/g, '')
  const bracketedMatch = /^\[([0-9a-f:.%]+)\](?::\d{1,5})?$/i.exec(hop)
  if (bracketedMatch) return canonicalAddress(bracketedMatch[1]!)
  const portMatch = /^(\d+\.\d+\.\d+\.\d+):\d{1,5}$/.exec(hop)
  return canonicalAddress(portMatch ? portMatch[1]! : hop)
}

interface Peer {
  address: string
  network: string
  isTrusted: boolean
  isPrivate: boolean
}

function clientOf(userAgent: string | undefined): string | null {
  if (!userAgent) return null
  return userAgent.replace(/[\x00-\x1f\x7f-\x9f]/g, '').slice(0, MAX_CLIENT_LENGTH) || null
}

/**
 * Whether a host name is `localhost`, or a loopback address, with or without brackets. Unlike with `isLoopbackHost`, its
 * subdomains do not count: a resolver may ask a DNS server for them, so a page could name another machine first and this
 * one later.
 */
export function isLoopbackName(hostname: string): boolean {
  return hostname === 'localhost' || isLoopback(hostname.replace(/^\[|\]$/g, ''))
}
