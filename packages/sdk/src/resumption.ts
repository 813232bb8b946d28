import type { SdkClock } from './clock.ts'
import type { Handover, MessageFrame } from './handover.ts'
import type { HubConnection, ReadyFrame } from './hub-connection.ts'
import { HUB_RESUME_PREFIX } from './protocol.ts'

/** A logical connection to the hub: it continues over successive sockets, as long as it is resumed. */
export interface HubSession {
  connectionId: string
  /** Undefined if the hub cannot resume connections. */
  resumeToken: string | undefined
  resumeSeconds: number
  /** The sequence number of the last message that arrived. */
  lastSeq: number
  /** When the session's socket was lost; undefined while it has one. */
  lostAt: number | undefined
  /** Whether the resume token was offered to the hub, which may then have resumed the session. */
  isOffered: boolean
}

/** Resumes the agent's connection over new sockets, and drops messages that arrive a second time. */
export class Resumption {
  #clock: SdkClock
  #handover: Handover
  #current: HubSession | undefined
  #sessions = new WeakMap<HubConnection, HubSession>()

  constructor(clock: SdkClock, handover: Handover) {
    this.#clock = clock
    this.#handover = handover
  }

  /** The subprotocols by which a new socket asks to resume the connection; none if there is none to resume. */
  offer(): string[] {
    const session = this.#current
    if (!session?.resumeToken || this.#isExpired(session)) return []
    session.isOffered = true
    return [`${HUB_RESUME_PREFIX}${session.resumeToken}.${session.lastSeq}`]
  }

  /**
   * Assigns a ready socket to its session, and returns that session. `unresumed`: the id of the previous connection, if
   * that could be resumed and the hub began a new one instead.
   */
  ready(
    connection: HubConnection,
    frame: ReadyFrame,
  ): { session: HubSession; unresumed: string | undefined } {
    const previous = this.#current
    const isResumed = frame.resumed === true && previous !== undefined
    const session: HubSession = {
      connectionId: frame.connection_id,
      resumeToken: frame.resume_token,
      resumeSeconds: frame.resume_seconds ?? 0,
      lastSeq: 0,
      lostAt: undefined,
      isOffered: false,
    }
    // Keeps the object, so that references to the session stay valid.
    const current = isResumed ? Object.assign(previous, session, { lastSeq: previous.lastSeq }) : session
    this.#sessions.set(connection, current)
    this.#current = current
    return {
      session: current,
      unresumed: isResumed || !previous?.resumeToken ? undefined : previous.connectionId,
    }
  }

  lost(connection: HubConnection): void {
    const session = this.#sessions.get(connection)
    if (session && session === this.#current) session.lostAt = this.#clock.now()
  }

  /** Whether this agent itself may have resumed the connection that closed with `resumed_elsewhere`. */
  mayHaveResumed(connection: HubConnection): boolean {
    return this.#sessions.get(connection)?.isOffered === true
  }

  /** The session of a socket; the socket itself before `ready`. */
  sessionOf(connection: HubConnection): object {
    return this.#sessions.get(connection) ?? connection
  }

  /** Passes a message, unless it has arrived before, to the `Handover`, which delivers it in order. */
  receive(connection: HubConnection, frame: MessageFrame): void {
    const session = this.#sessions.get(connection)
    const { seq } = frame
    if (session && seq !== undefined) {
      if (seq <= session.lastSeq) return
      session.lastSeq = seq
    }
    this.#handover.arrived(connection, frame)
  }

  #isExpired({ lostAt, resumeSeconds }: HubSession): boolean {
    return lostAt !== undefined && this.#clock.now() - lostAt > resumeSeconds * 1000
  }
}
