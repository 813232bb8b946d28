import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { HUB_MAX_FRAME_BYTES, HUB_PROTOCOL } from '@keyway/sdk/protocol'
import { WebSocketServer } from 'ws'
import { type Clock, SECOND } from '../clock.ts'
import { newId } from '../ids.ts'
import type { Log } from '../log.ts'
import type { Caller } from '../network.ts'
import { HubSocket } from './agent-connection.ts'
import {
  badHeader,
  badToken,
  originProblem,
  type Refusal,
  readCredential,
  refusal,
  refuse,
  upgradeProblem,
} from './handshake.ts'
import type { HubQuestions, TokenClaims } from './hub-questions.ts'
import { HandshakeLimits, MAX_PENDING_HANDSHAKES } from './rate-limits.ts'

/** How long a peer may take to answer a close frame before its socket is cut. */
const CLOSE_TIMEOUT_MS = 3 * SECOND
const MAX_FRAGMENTS = 1024

export interface DoorDeps {
  clock: Clock
  questions: Pick<HubQuestions, 'verifyToken'>
  log: Log
  publicUrl: string
  corsOrigins: readonly string[]
  isDraining(): boolean
  /** Claims are null where the token is bad and only a close code can say so. */
  take(socket: HubSocket, claims: TokenClaims | null, caller: Caller): void
}

export interface Door {
  /** Answers a handshake: an upgraded socket goes to `take`, everyone else hears why not. Never throws. */
  open(request: IncomingMessage, socket: Duplex, head: Buffer, caller: Caller): void
}

export function createDoor({
  clock,
  questions,
  log,
  publicUrl,
  corsOrigins,
  isDraining,
  take,
}: DoorDeps): Door {
  const origins = new Set([new URL(publicUrl).origin, ...corsOrigins])
  const limits = new HandshakeLimits()
  const server = createWebSocketServer()
  server.on('wsClientError', (error, socket) =>
    answer(socket, badHeader(/Sec-WebSocket-\w+/.exec(error.message)?.[0] ?? 'Upgrade', `${error.message}.`)),
  )

  return {
    open(request, socket, head, caller) {
      socket.on('error', destroySocket)
      admit(request, socket, head, caller).catch(error => {
        log.error({ err: error }, 'a handshake failed')
        socket.destroy()
      })
    },
  }

  async function admit(
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    caller: Caller,
  ): Promise<void> {
    const credential =
      upgradeProblem(request) ??
      originProblem(request, origins) ??
      capacityProblem(caller) ??
      readCredential(request)
    if ('status' in credential) {
      answer(socket, credential)
      return
    }
    const claims = await verify(credential.token)
    if (claims) limits.giveBack(caller.network)
    if (claims === 'unknown') answer(socket, unavailable('The token cannot be checked right now.'))
    else if (!claims && credential.way === 'header') answer(socket, badToken())
    else upgrade(request, socket, head, accepted => take(accepted, claims, caller))
  }

  /**
   * The answer to the handshake waits to the end of this turn of the event loop: most keys are answered for by then,
   * and it leaves in one system call with `ready`. A call each was a tenth of what a connect costs.
   */
  function upgrade(
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    take: (accepted: HubSocket) => void,
  ): void {
    socket.cork()
    server.handleUpgrade(request, socket, head, take)
    setImmediate(uncork, socket)
  }

  function capacityProblem(caller: Caller): Refusal | null {
    if (isDraining()) return unavailable('This node is shutting down; connect again.')
    if (limits.pending >= MAX_PENDING_HANDSHAKES)
      return unavailable('Too many handshakes at once; try again.')
    if (limits.take(caller.network, clock.now())) return null
    return refusal(429, 'rate_limited', 'Too many failed handshakes from this network; wait a second.', {
      'Retry-After': '1',
    })
  }

  async function verify(token: string): Promise<TokenClaims | null | 'unknown'> {
    limits.pending++
    try {
      const claims = await questions.verifyToken(token)
      return claims && claims.expiresAt > clock.now() ? claims : null
    } catch (error) {
      log.warn({ err: error }, 'an agent token could not be checked')
      return 'unknown'
    } finally {
      limits.pending--
    }
  }

  function answer(socket: Duplex, refused: Refusal): void {
    refuse(socket, refused, publicUrl, newId(clock.now()))
  }
}

function createWebSocketServer() {
  // Named first: the types of ws do not know closeTimeout yet.
  const options = {
    noServer: true,
    WebSocket: HubSocket,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: HUB_MAX_FRAME_BYTES,
    maxFragments: MAX_FRAGMENTS,
    closeTimeout: CLOSE_TIMEOUT_MS,
    handleProtocols: (offered: Set<string>) => (offered.has(HUB_PROTOCOL) ? HUB_PROTOCOL : false),
  }
  return new WebSocketServer<typeof HubSocket>(options)
}

function uncork(socket: Duplex): void {
  socket.uncork()
}

function destroySocket(this: Duplex): void {
  this.destroy()
}

function unavailable(detail: string): Refusal {
  return refusal(503, 'unavailable', detail, { 'Retry-After': '1' })
}
