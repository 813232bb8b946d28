import type { PresenceEvent } from './agent-options.ts'
import type { SdkClock } from './clock.ts'
import { KeywayError } from './errors.ts'
import type { HubConnection } from './hub-connection.ts'
import { MessageStream } from './message-stream.ts'
import type { AgentConnectionObject, ServerFrame } from './protocol.ts'

/** The id of `watch` frames, by which their errors are recognised. */
const WATCH_ID = 'watch'
/** Pause after the hub answered `rate_limited`. */
const RATE_LIMIT_PAUSE_MS = 10_000

/** The agent's watch of the owner's connections. All iterators share one watch at the hub. */
export class Watching {
  readonly #clock: SdkClock
  readonly #streams = new Set<MessageStream<PresenceEvent>>()
  readonly #connections = new Map<string, AgentConnectionObject>()
  /** The connection that sent `watch`; frames of other connections are ignored. */
  #watchedOver: HubConnection | undefined
  /** The connections received so far of a list in several frames; null once it is complete. */
  #partialList: AgentConnectionObject[] | null = []
  #cancelRetry = () => {}

  constructor(clock: SdkClock) {
    this.#clock = clock
  }

  /** Opens an iterator; `connection` is the agent's current one. */
  open(connection: HubConnection | undefined): MessageStream<PresenceEvent> {
    const stream = new MessageStream<PresenceEvent>(ended => this.#close(ended), 'changes')
    this.#streams.add(stream)
    if (connection && this.#watchedOver === connection && !this.#partialList) stream.push(this.#fullList())
    else if (connection && this.#watchedOver !== connection) this.watchOver(connection)
    return stream
  }

  /** If there are iterators, sends `watch` over this connection, which the hub answers with a new list. */
  watchOver(connection: HubConnection): void {
    this.#cancelRetry()
    this.#watchedOver = undefined
    if (this.#streams.size === 0) return
    this.#watchedOver = connection
    this.#partialList = []
    connection.send({ type: 'watch', id: WATCH_ID })
  }

  receive(connection: HubConnection, frame: ServerFrame): void {
    if (connection !== this.#watchedOver) return
    if (frame.type === 'presence') this.#receiveList(frame.connections, frame.more === true)
    if (frame.type === 'joined') {
      this.#connections.set(frame.connection.connection_id, frame.connection)
      this.#push({ type: 'joined', connection: frame.connection })
    }
    if (frame.type === 'left') {
      this.#connections.delete(frame.connection_id)
      this.#push({ type: 'left', connectionId: frame.connection_id, reason: frame.reason })
    }
  }

  /**
   * If the error is about the watch, handles it and returns true: ends all iterators, or retries if rate limited.
   * Ignores it if the watch has moved to another connection.
   */
  handleError(
    connection: HubConnection,
    { id, code, detail }: Extract<ServerFrame, { type: 'error' }>,
  ): boolean {
    if (id !== WATCH_ID) return false
    if (connection !== this.#watchedOver) return true
    if (code === 'rate_limited')
      this.#cancelRetry = this.#clock.after(RATE_LIMIT_PAUSE_MS, () => this.watchOver(connection))
    else this.end(new KeywayError(code === 'insufficient_scope' ? code : 'refused', detail))
    return true
  }

  /** Ends all iterators, with the error if there is one. Returns whether there were any. */
  end(error: KeywayError | undefined): boolean {
    this.#cancelRetry()
    this.#watchedOver = undefined
    const streams = [...this.#streams]
    this.#streams.clear()
    for (const stream of streams) stream.end(error)
    return streams.length > 0
  }

  #receiveList(connections: AgentConnectionObject[], more: boolean): void {
    this.#partialList = [...(this.#partialList ?? []), ...connections]
    if (more) return
    this.#connections.clear()
    for (const connection of this.#partialList) this.#connections.set(connection.connection_id, connection)
    this.#partialList = null
    this.#push(this.#fullList())
  }

  #fullList(): PresenceEvent {
    return { type: 'presence', connections: [...this.#connections.values()] }
  }

  #push(event: PresenceEvent): void {
    for (const stream of this.#streams) stream.push(event)
  }

  #close(stream: MessageStream<PresenceEvent>): void {
    this.#streams.delete(stream)
    if (this.#streams.size > 0) return
    this.#cancelRetry()
    this.#watchedOver?.send({ type: 'unwatch' })
    this.#watchedOver = undefined
  }
}
