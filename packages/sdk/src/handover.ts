import type { SdkClock } from './clock.ts'
import type { HubConnection } from './hub-connection.ts'
import type { ServerFrame } from './protocol.ts'

/** Longer than the hub itself waits for its other nodes. */
const LONGEST_WAIT_MS = 2_500

export type MessageFrame = Extract<ServerFrame, { type: 'message' }>

/**
 * Preserves message order while an agent moves to a new connection. Messages on the old connection may arrive after
 * later ones on the new connection; so the old one is pinged, and messages of the new one are buffered until its
 * pong.
 */
export class Handover {
  #clock: SdkClock
  #deliver: (connection: HubConnection, frame: MessageFrame) => void
  #under: { from: HubConnection; to: HubConnection; waiting: MessageFrame[]; cancel(): void } | undefined

  constructor(clock: SdkClock, deliver: (connection: HubConnection, frame: MessageFrame) => void) {
    this.#clock = clock
    this.#deliver = deliver
  }

  begin(from: HubConnection, to: HubConnection): void {
    this.end()
    if (!from.send({ type: 'ping' })) return
    const cancel = this.#clock.after(LONGEST_WAIT_MS, () => this.end())
    this.#under = { from, to, waiting: [], cancel }
  }

  arrived(connection: HubConnection, frame: MessageFrame): void {
    if (this.#under?.to === connection) this.#under.waiting.push(frame)
    else this.#deliver(connection, frame)
  }

  /** Called when all messages of that connection have arrived: it answered the ping, or it is closed. */
  caughtUp(connection: HubConnection): void {
    if (this.#under?.from === connection || this.#under?.to === connection) this.end()
  }

  /** Delivers the buffered messages. */
  end(): void {
    const ended = this.#under
    this.#under = undefined
    ended?.cancel()
    for (const frame of ended?.waiting ?? []) this.#deliver(ended!.to, frame)
  }
}
