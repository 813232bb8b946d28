import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { HUB_BEARER_PREFIX, HUB_PROTOCOL, HUB_RESUME_PREFIX } from '@keyway/sdk/protocol'
import { WebSocketServer } from 'ws'
import { type Clock, SECOND } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Caller } from '../network.ts'
import { newRequestId } from '../request-id.ts'
import { HubSocket } from './agent-connection.ts'
import { FRAME_LIMITS, MAX_TOKEN_LENGTH } from './frame.ts'
import type { HubPorts, TokenClaims } from './hub-ports.ts'
import { badHeader, badToken, refuse, unavailable } from './problem-response.ts'
import { HandshakeLimits, MAX_PENDING_HANDSHAKES } from './rate-limits.ts'
import { parseResume, type ResumeRequest } from './resume-token.ts'

const HUB_PATH = '/hub'
const CREDENTIAL_HELP = `Send the agent token as "Authorization: Bearer <token>", or, from a browser, as the second of two subprotocols: new WebSocket(url, ["${HUB_PROTOCOL}", "${HUB_BEARER_PREFIX}<token>"]).`
const RESUME_HELP = `Resume once, with the text of "ready" and the number of the last message: as the subprotocol "${HUB_RESUME_PREFIX}<resume_token>.<last seq>", or as "Keyway-Resume: <resume_token>.<last seq>".`
/** Maximum length of a query, in characters. A longer one is refused as if it contained a credential. */
const MAX_QUERY_LENGTH = 2048
/** Query parameters that are refused as credentials, in lower case; so are names that end in `token`. */
const CREDENTIAL_NAMES = new Set('key apikey api_key api-key bearer jwt auth authorization'.split(' '))
const API_KEY_PATTERN = /svc_[0-9A-Za-z]{32}/
/** Start of the second part of a JWT: a dot, and `{"` in base64. */
const JWT_PAYLOAD = '.eyJ'
export const CREDENTIAL_IN_URL = `URLs are written to logs, so credentials in them are refused. ${CREDENTIAL_HELP}`
/**
 * Maximum length of the header with the offered subprotocols: the hub's own, those with a token and a resume token, and
 * a few others.
 */
const MAX_PROTOCOLS_LENGTH = MAX_TOKEN_LENGTH + 1024
const MAX_PROTOCOLS = 16
const BEARER_PATTERN = /^bearer +([^\s,]+) *$/i
/** How long a peer may take to answer a close frame before its socket is terminated. */
const CLOSE_TIMEOUT_MS = 3 * SECOND

export interface HandshakesDeps {
  clock: Clock
  ports: Pick<HubPorts, 'verifyToken'>
  log: Log
  publicUrl: string
  corsOrigins: readonly string[]
  isDraining(): boolean
  /** Called with an upgraded socket. `claims` is null if the token is invalid and a close code must report that. */
  accept(socket: HubSocket, claims: TokenClaims | null, caller: Caller, resume: ResumeRequest | null): void
}

export interface Handshakes {
  /**
   * Answers a handshake: upgrades the socket and passes it to `accept`, or answers with a problem document. False if
   * the token is invalid, or if the handshake was refused or failed before the token was found valid. Never rejects.
   */
  handle(request: IncomingMessage, socket: Duplex, head: Buffer, caller: Caller): Promise<boolean>
}

export function createHandshakes({
  clock,
  ports,
  log,
  publicUrl,
  corsOrigins,
  isDraining,
  accept,
}: HandshakesDeps): Handshakes {
  const origins = new Set([new URL(publicUrl).origin, ...corsOrigins])
  const limits = new HandshakeLimits()
  const server = createWebSocketServer()
  server.on('wsClientError', (error, socket) =>
    refuseHandshake(
      socket,
      badHeader(/Sec-WebSocket-\w+/.exec(error.message)?.[0] ?? 'Upgrade', `${error.message}.`),
    ),
  )

  return {
    async handle(request, socket, head, caller) {
      socket.on('error', destroySocket)
      try {
        return await authenticate(request, socket, head, caller)
      } catch (error) {
        log.error({ err: error }, 'a handshake failed')
        socket.destroy()
        return false
      }
    },
  }

  async function authenticate(
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    caller: Caller,
  ): Promise<boolean> {
    const credential =
      upgradeProblem(request) ??
      originProblem(request, origins) ??
      capacityProblem(caller) ??
      readCredential(request)
    if (credential instanceof KeywayError) {
      refuseHandshake(socket, credential)
      return false
    }
    const claims = await verify(credential.token)
    if (claims) limits.refund(caller.network)
    if (claims === 'unknown') refuseHandshake(socket, unavailable('The token cannot be checked right now.'))
    else if (!claims && credential.way === 'header') refuseHandshake(socket, badToken())
    else upgrade(request, socket, head, upgraded => accept(upgraded, claims, caller, credential.resume))
    return claims !== null && claims !== 'unknown'
  }

  /**
   * Corks the socket until the end of this turn of the event loop. On SQLite `ready` is usually written by then, and one
   * system call sends it with the response; a second call was measured as a tenth of the cost of a connect.
   */
  function upgrade(
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    onUpgraded: (upgraded: HubSocket) => void,
  ): void {
    socket.cork()
    server.handleUpgrade(request, socket, head, upgraded => {
      // From now on ws handles errors of the socket.
      socket.off('error', destroySocket)
      upgraded.stream = socket
      onUpgraded(upgraded)
    })
    setImmediate(uncork, socket)
  }

  function capacityProblem(caller: Caller): KeywayError | null {
    if (isDraining()) return unavailable('This node is shutting down; connect again.')
    if (limits.pending >= MAX_PENDING_HANDSHAKES)
      return unavailable('Too many handshakes at once; try again.')
    if (limits.take(caller.network, clock.now())) return null
    const detail = 'Too many failed handshakes from this network; wait a second.'
    return new KeywayError('rate_limited', detail, { retryAfter: 1 })
  }

  async function verify(token: string): Promise<TokenClaims | null | 'unknown'> {
    limits.pending++
    try {
      const claims = await ports.verifyToken(token)
      return claims && claims.expiresAt > clock.now() ? claims : null
    } catch (error) {
      log.warn({ err: error }, 'an agent token could not be checked')
      return 'unknown'
    } finally {
      limits.pending--
    }
  }

  function refuseHandshake(socket: Duplex, refusal: KeywayError): void {
    refuse(socket, refusal, publicUrl, newRequestId(clock.now()))
  }
}

/**
 * Checks path, method, `Upgrade` and version before the credential is checked; ws makes the other checks of RFC 6455
 * section 4.2.1 afterwards. Null if nothing is wrong.
 */
function upgradeProblem(request: IncomingMessage): KeywayError | null {
  if (pathOf(request.url ?? '') !== HUB_PATH) {
    return new KeywayError('not_found', `The hub is at ${HUB_PATH}. /docs lists what there is.`)
  }
  if (request.headers.upgrade?.toLowerCase() !== 'websocket' || request.method !== 'GET') {
    return new KeywayError('upgrade_required', 'Connect with a WebSocket client.')
  }
  if (request.headers['sec-websocket-version'] !== '13') {
    return new KeywayError('upgrade_required', 'This hub speaks WebSocket version 13.')
  }
  return null
}

/** Reads the only agent token of a handshake, or returns the error with which to refuse the handshake. */
function readCredential(request: IncomingMessage): Credential | KeywayError {
  const { authorization } = request.headers
  const query = queryOf(request.url ?? '')
  if (containsCredential(query)) return new KeywayError('invalid_token', CREDENTIAL_IN_URL)
  const header = request.headers['sec-websocket-protocol'] ?? ''
  if (header.length > MAX_PROTOCOLS_LENGTH)
    return badHeader('Sec-WebSocket-Protocol', 'This list is too long.')
  const offeredProtocols = header.split(',', MAX_PROTOCOLS).map(name => name.trim())
  const bearerProtocols = offeredProtocols.filter(name => name.startsWith(HUB_BEARER_PREFIX))
  if (request.headers['sec-websocket-protocol'] !== undefined && !offeredProtocols.includes(HUB_PROTOCOL)) {
    return badHeader(
      'Sec-WebSocket-Protocol',
      `Offer the subprotocol ${HUB_PROTOCOL}, or none. ${CREDENTIAL_HELP}`,
    )
  }
  if (bearerProtocols.length + (authorization === undefined ? 0 : 1) > 1) {
    return badHeader('Authorization', `The handshake has two credentials. ${CREDENTIAL_HELP}`)
  }
  const resume = readResume(request, offeredProtocols)
  if (resume instanceof KeywayError) return resume
  const credential = bearerProtocols[0]
    ? { token: bearerProtocols[0].slice(HUB_BEARER_PREFIX.length), way: 'subprotocol' as const }
    : { token: BEARER_PATTERN.exec(authorization ?? '')?.[1] ?? '', way: 'header' as const }
  if (!credential.token && credential.way === 'header') {
    return new KeywayError('authentication_required', CREDENTIAL_HELP)
  }
  return { ...credential, token: credential.token.length > MAX_TOKEN_LENGTH ? '' : credential.token, resume }
}

/** Reads the resumption that the agent asks for; null if it asks for none, or the error if the request is malformed. */
function readResume(
  request: IncomingMessage,
  offeredProtocols: readonly string[],
): ResumeRequest | KeywayError | null {
  const header = request.headers['keyway-resume']
  const resumeTexts = offeredProtocols
    .filter(name => name.startsWith(HUB_RESUME_PREFIX))
    .map(name => name.slice(HUB_RESUME_PREFIX.length))
  if (header !== undefined) resumeTexts.push(String(header))
  if (resumeTexts.length === 0) return null
  const resume = resumeTexts.length === 1 ? parseResume(resumeTexts[0]!) : null
  return resume ?? badHeader('Keyway-Resume', RESUME_HELP)
}

/**
 * Whether the query contains a credential, or is longer than MAX_QUERY_LENGTH and therefore not searched. The search
 * takes linear time, since clients that are not authenticated send the query.
 */
function containsCredential(query: string): boolean {
  if (query.length > MAX_QUERY_LENGTH) return true
  const names = query.split(/[?&]/).map(parameter => /^([^=]{0,32})=/.exec(parameter)?.[1]?.toLowerCase())
  const hasCredentialName = names.some(name => name && (CREDENTIAL_NAMES.has(name) || name.endsWith('token')))
  return hasCredentialName || API_KEY_PATTERN.test(query) || query.includes(JWT_PAYLOAD)
}

function pathOf(url: string): string {
  const queryStart = url.indexOf('?')
  return queryStart < 0 ? url : url.slice(0, queryStart)
}

function queryOf(url: string): string {
  const queryStart = url.indexOf('?')
  return queryStart < 0 ? '' : url.slice(queryStart + 1)
}

interface Credential {
  token: string
  /**
   * How the token was presented. It determines how an invalid one is reported: browsers expose close codes, but not the
   * status of a handshake.
   */
  way: 'header' | 'subprotocol'
  resume: ResumeRequest | null
}

/**
 * The refusal of a page whose origin is not allowed, otherwise null. Browsers send `Origin`, other clients usually do
 * not. The origin `null` is never allowed.
 */
function originProblem(request: IncomingMessage, allowed: ReadonlySet<string>): KeywayError | null {
  const { origin } = request.headers
  if (origin === undefined || allowed.has(origin)) return null
  return new KeywayError('forbidden', 'Pages of this origin may not open the hub; see KEYWAY_CORS_ORIGINS.')
}

function createWebSocketServer() {
  // Declared as a variable, since the types of ws lack closeTimeout and would reject it in a literal.
  const options = {
    noServer: true,
    WebSocket: HubSocket,
    clientTracking: false,
    perMessageDeflate: false,
    // frames.ts answers pings, within the rate limits.
    autoPong: false,
    ...FRAME_LIMITS,
    closeTimeout: CLOSE_TIMEOUT_MS,
    handleProtocols: (offeredProtocols: Set<string>) =>
      offeredProtocols.has(HUB_PROTOCOL) ? HUB_PROTOCOL : false,
  }
  return new WebSocketServer<typeof HubSocket>(options)
}

function uncork(socket: Duplex): void {
  socket.uncork()
}

function destroySocket(this: Duplex): void {
  this.destroy()
}
