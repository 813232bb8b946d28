import type {
  AgentDisconnected,
  AgentEvents,
  AgentMessage,
  AgentOptions,
  AgentReady,
  PresenceEvent,
  RequestHandler,
  SendOptions,
} from './agent-options.ts'
import { AgentTokenSource } from './agent-token-source.ts'
import { systemClock } from './clock.ts'
import { Dial } from './dial.ts'
import { DrainingConnections } from './draining-connections.ts'
import { Emitter } from './emitter.ts'
import { environment, onAbort, platformWebSocket, randomId, serviceOrigin } from './environment.ts'
import { closedError, type KeywayError } from './errors.ts'
import { Handover, type MessageFrame } from './handover.ts'
import {
  type HubClose,
  HubConnection,
  type ReadyFrame,
  readyEvent,
  type WebSocketConstructor,
} from './hub-connection.ts'
import { Inbox } from './inbox.ts'
import { type Delivery, type OutgoingMessage, PendingSends } from './pending-sends.ts'
import type { Json, Sendable, ServerFrame } from './protocol.ts'
import { Renewal } from './renewal.ts'
import { type RequestOptions, Requests } from './requests.ts'
import { Responder } from './responder.ts'
import { Resumption } from './resumption.ts'
import { RESTART_JITTER_MS, Retries } from './retries.ts'
import {
  closeFromError,
  isClose,
  isFinalError,
  reconnectAfter,
  stopErrorFromClose,
  stopErrorFromExchange,
} from './stop-reasons.ts'
import { Watching } from './watching.ts'

interface LiveConnection {
  connection: HubConnection
  renewal: Renewal
  since: number
  ready: AgentReady
}

/**
 * An agent that stays connected as long as its key is active: it exchanges the key for a short-lived token, connects,
 * renews the token in place, reconnects after failures, and stops permanently when the service refuses the key.
 *
 *     const agent = new Agent({ url: 'https://keyway.example.com', apiKey: process.env.KEYWAY_API_KEY })
 *     agent.on('message', ({ from, data }) => console.log(from, data))
 *     agent.on('stopped', ({ error }) => error && console.error(error.message))
 */
export class Agent extends Emitter<AgentEvents> implements AsyncIterable<AgentMessage> {
  #hubUrl: string
  #WebSocket: WebSocketConstructor
  #clock
  #tokens: AgentTokenSource
  #sends: PendingSends
  #inbox = new Inbox()
  #requests: Requests
  #responder: Responder
  #watching: Watching
  #handover: Handover
  #resumption: Resumption
  #retries = new Retries()
  #idPrefix = randomId()
  #idCounter = 0
  #removeAbortListener = () => {}

  #current: LiveConnection | undefined
  #draining: DrainingConnections
  #dialing: Dial | undefined
  #cancelWait: (() => void) | undefined
  #stopped: { error?: KeywayError } | undefined

  /** Starts at once; listeners added in the same tick receive all events. */
  constructor(options: AgentOptions = {}) {
    super()
    const origin = serviceOrigin(options.url)
    this.#hubUrl = `${origin.replace(/^http/, 'ws')}/hub`
    this.#WebSocket = options.WebSocket ?? platformWebSocket()
    this.#clock = options.clock ?? systemClock
    this.#sends = new PendingSends(this.#clock)
    this.#requests = new Requests(this.#clock, (message, signal) => this.#send(message, signal))
    this.#responder = new Responder(async (to, data, replyTo) => this.send(to, data, { replyTo }))
    this.#watching = new Watching(this.#clock)
    this.#draining = new DrainingConnections(this.#clock)
    this.#handover = new Handover(this.#clock, (connection, frame) => this.#message(connection, frame))
    this.#resumption = new Resumption(this.#clock, this.#handover)
    this.#tokens = new AgentTokenSource({
      origin,
      apiKey: options.apiKey ?? environment('KEYWAY_API_KEY'),
      getToken: options.getToken,
      fetch: options.fetch ?? fetch,
      clock: this.#clock,
    })
    this.#removeAbortListener = onAbort(options.signal, () => this.close())
    queueMicrotask(() => this.#dial())
  }

  /** Whether the agent is connected now. */
  get connected(): boolean {
    return this.#current !== undefined
  }

  /** The content of the `ready` frame; undefined while not connected. */
  get connection(): AgentReady | undefined {
    return this.#current?.ready
  }

  /**
   * Sends `data` to other connections of the same owner: one connection, all of one key, or `"all"`. Resolves with the
   * number of open connections to which the hub has written it (`delivered`), and of broken connections for which the
   * hub stores it until they resume (`held`). At most 256 messages or 1 MiB may await their acknowledgement, also while
   * disconnected; further ones are rejected with `queue_full`. Messages arrive once and in order; after a `gap` a
   * message may arrive twice.
   */
  send<Value>(to: string, data: Sendable<Value>, { signal, replyTo }: SendOptions = {}): Promise<Delivery> {
    const message = { id: `${this.#idPrefix}-${++this.#idCounter}`, to, data: data as Json }
    return this.#send(replyTo === undefined ? message : { ...message, reply_to: replyTo }, signal)
  }

  /**
   * Sends a request to one connection, to all of a key, or to `"all"`, and resolves with the first answer.
   *
   * @throws KeywayError `no_responders` when there is no receiver, or none of them answers requests;
   *   `request_failed` with `reason` when all refused or failed otherwise; `timeout`; `queue_full` beyond 1,000
   *   requests without an answer; `invalid_configuration` for an invalid timeout; the errors of `send`
   */
  request<Value>(to: string, data: Sendable<Value>, options: RequestOptions = {}): Promise<Json> {
    return this.#requests.request(to, data as Json, options)
  }

  /**
   * Answers requests with what the handler returns, from now on; a second call replaces the handler. The handler is
   * called once for each request, and for at most 100 at a time: more are refused as `busy`. To send answers, the key
   * needs `agents:send`.
   */
  onRequest(handler: RequestHandler): this {
    this.#responder.handler = handler
    return this
  }

  /** Stops the agent. Unacknowledged messages and unanswered requests are rejected with `closed`. */
  close(): void {
    this.#stop(undefined)
  }

  /**
   * All messages from now on, except requests and answers. Ends with `close`; throws when the service stops the agent,
   * or `queue_full` when more than 10,000 messages wait to be read.
   */
  [Symbol.asyncIterator](): AsyncIterableIterator<AgentMessage> {
    const stream = this.#inbox.open()
    if (this.#stopped) this.#inbox.end(this.#stopped.error)
    return stream
  }

  #send(message: OutgoingMessage, signal?: AbortSignal): Promise<Delivery> {
    if (this.#stopped) return Promise.reject(this.#stopped.error ?? closedError())
    return this.#sends.add(message, signal)
  }

  /**
   * Iterates over changes of the owner's connections on all nodes. The first event, and the first after each
   * reconnection, has all connections; the others have one that joined or left. Ends with `close`; throws when the key
   * lacks `agents:read`, the hub refuses the watch, or the service stops the agent, and `queue_full` when more than
   * 10,000 changes wait to be read.
   */
  watch(): AsyncIterableIterator<PresenceEvent> {
    const stream = this.#watching.open(this.#current?.connection)
    if (this.#stopped) this.#watching.end(this.#stopped.error)
    return stream
  }

  #dial(): void {
    if (this.#stopped || this.#dialing) return
    this.#dialing = new Dial({
      tokens: this.#tokens,
      clock: this.#clock,
      open: token => this.#connect(token),
      onFailed: failure => {
        this.#dialing = undefined
        this.#reconnectOrStop(failure)
      },
    })
  }

  #connect(token: string): HubConnection {
    return new HubConnection({
      WebSocket: this.#WebSocket,
      url: this.#hubUrl,
      token,
      offer: this.#resumption.offer(),
      clock: this.#clock,
      onReady: (connection, frame) => this.#ready(connection, frame),
      onFrame: (connection, frame) => this.#frame(connection, frame),
      onClosed: (connection, close) => this.#closed(connection, close),
    })
  }

  #ready(connection: HubConnection, frame: ReadyFrame): void {
    this.#dialing?.finish()
    this.#dialing = undefined
    this.#cancelWait?.()
    this.#current?.renewal.stop()
    const { session, unresumed } = this.#resumption.ready(connection, frame)
    const previous = this.#current?.connection
    if (frame.resumed) previous?.abandon()
    else if (previous) this.#handover.begin(previous, connection)
    const renewal = new Renewal({
      tokens: this.#tokens,
      clock: this.#clock,
      present: token => void connection.send({ type: 'token', token }),
      stopIfFinal: error => this.#stopIfFinal(error),
    })
    this.#current = { connection, renewal, since: this.#clock.now(), ready: readyEvent(frame) }
    renewal.schedule(frame.expires_in)
    this.#sends.sendOver(connection, session.resumeToken === undefined ? undefined : session)
    this.#watching.watchOver(connection)
    this.emit('ready', this.#current.ready)
    if (unresumed) this.emit('gap', { connectionId: frame.connection_id, previousConnectionId: unresumed })
  }

  #frame(connection: HubConnection, frame: ServerFrame): void {
    if (frame.type === 'message') this.#resumption.receive(connection, frame)
    if (frame.type === 'pong') this.#handover.pongArrived(connection)
    if (frame.type === 'sent') this.#sends.acknowledge(frame.id, frame.delivered, frame.held)
    if (frame.type === 'error') this.#handleError(connection, frame)
    if (frame.type === 'draining') this.#drain(connection, frame.close_in_seconds)
    this.#watching.receive(connection, frame)
    if (this.#current?.connection !== connection) return
    if (frame.type === 'token_expiring') this.#current.renewal.expiring()
    if (frame.type === 'token_accepted') {
      this.#current.renewal.accepted(frame.expires_in)
      this.emit('renewed', { expiresIn: frame.expires_in })
    }
  }

  #message(connection: HubConnection, frame: MessageFrame): void {
    if (!this.#inbox.isNew(this.#resumption.sessionOf(connection), frame)) return
    if (this.#requests.handleAnswer(frame) || this.#responder.handleRequest(frame)) return
    this.emit('message', this.#inbox.deliver(frame))
  }

  #handleError(connection: HubConnection, frame: Extract<ServerFrame, { type: 'error' }>): void {
    if (this.#watching.handleError(connection, frame)) return
    const { code, detail, id } = frame
    if (id !== undefined) this.#sends.failed(id, code, detail)
    else if (this.#current?.connection === connection && code !== 'unknown_type') {
      this.#current.renewal.refused()
    }
  }

  /** Make before break: the old connection stays in use until its successor is ready. */
  #drain(connection: HubConnection, closeInSeconds: number): void {
    if (this.#current?.connection !== connection) return
    const closesInMs = this.#draining.add(connection, closeInSeconds, () => {
      connection.abandon()
      this.#closed(connection, { code: 1012, reason: 'restarting' })
    })
    if (closesInMs !== undefined)
      this.#dialAfter(this.#clock.random() * Math.min(RESTART_JITTER_MS, closesInMs / 2))
  }

  #closed(connection: HubConnection, close: HubClose): void {
    if (this.#stopped) return
    this.#draining.remove(connection)
    this.#handover.closed(connection)
    this.#sends.lost(connection)
    this.#resumption.lost(connection)
    if (close.code === 4409 && this.#resumption.mayHaveResumed(connection)) this.#superseded(connection)
    else if (this.#dialing?.owns(connection)) this.#dialing.fail(close)
    else if (this.#current?.connection === connection) this.#lost(close)
    else if (reconnectAfter(close.code) === 'never') this.#stop(stopErrorFromClose(close))
  }

  /**
   * The hub closed the connection because this agent resumed it over another socket. That socket belongs to the attempt
   * in progress, which will become ready, or to an attempt that the agent gave up.
   */
  #superseded(connection: HubConnection): void {
    if (this.#current?.connection !== connection) return
    this.#current.renewal.stop()
    if (this.#dialing) this.#current = undefined
    else this.#lost({ code: 1006, reason: 'resumed_elsewhere' })
  }

  #lost(close: HubClose): void {
    const { renewal, since } = this.#current!
    renewal.stop()
    this.#retries.afterConnectionOf(this.#clock.now() - since)
    this.#current = undefined
    this.#reconnectOrStop(close)
  }

  /** Schedules the next attempt, or stops the agent; emits `disconnected` unless another connection is open. */
  #reconnectOrStop(failure: unknown): void {
    if (this.#stopIfFinal(failure)) return
    const close = isClose(failure) ? failure : undefined
    const reconnect = close ? reconnectAfter(close.code) : 'backoff'
    if (close && reconnect === 'never') {
      this.#disconnected({ ...close, willReconnect: false })
      this.#stop(stopErrorFromClose(close))
      return
    }
    if (reconnect === 'exchange') this.#tokens.forget()
    const wait = this.#retries.next(reconnect, failure, this.#clock.random())
    // If an attempt is in progress by then (to replace a drained connection), `#dial` starts no second one.
    this.#dialAfter(wait)
    this.#disconnected({
      ...(close ?? closeFromError(failure)),
      willReconnect: true,
      retryInMs: Math.round(wait),
    })
  }

  #dialAfter(ms: number): void {
    this.#cancelWait?.()
    this.#cancelWait = this.#clock.after(ms, () => this.#dial())
  }

  #disconnected(event: AgentDisconnected): void {
    if (!this.#current) this.emit('disconnected', event)
  }

  #stopIfFinal(error: unknown): boolean {
    if (!isFinalError(error)) return false
    const stopError = stopErrorFromExchange(error)
    this.#endConnections()
    this.#disconnected({ code: 1000, reason: stopError.code, willReconnect: false })
    this.#stop(stopError)
    return true
  }

  #stop(error: KeywayError | undefined): void {
    if (this.#stopped) return
    this.#handover.end()
    this.#stopped = { error }
    this.#removeAbortListener()
    this.#cancelWait?.()
    this.#endConnections()
    this.#requests.rejectAll(error ?? closedError())
    this.#sends.rejectAll(error ?? closedError())
    const hadIterators = this.#inbox.end(error)
    const hadWatchers = this.#watching.end(error)
    // Without a listener the reason would be lost, and the stop would look like a bug of the program.
    const isUnobserved = this.listenerCount('stopped') === 0 && !hadIterators && !hadWatchers
    if (error && isUnobserved) console.error(`@keyway/sdk: the agent stopped. ${error.message}`)
    this.emit('stopped', { error })
  }

  #endConnections(): void {
    this.#dialing?.giveUp()
    this.#dialing = undefined
    this.#draining.closeAll()
    this.#current?.renewal.stop()
    this.#current?.connection.close()
    this.#current = undefined
  }
}
