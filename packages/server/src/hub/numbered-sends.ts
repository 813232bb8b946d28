/**
 * Number of the last sends whose outcomes are kept, so that each can be acknowledged again if the agent repeats it. The
 * protocol recommends at most as many unacknowledged sends.
 */
export const KEPT_OUTCOMES = 64

/** The number of open connections that a message was written to, and of broken ones for which it is kept. */
export interface Outcome {
  delivered: number
  held: number
}

export const NO_RECEIVERS: Outcome = { delivered: 0, held: 0 }

/** The state of numbered sends, as it is sent to another node. */
export interface SendsState {
  accepted: number
  /** The outcomes of the last accepted sends, in order. */
  outcomes: [delivered: number, held: number][]
}

/** The sends of one connection that have sequence numbers: each is accepted once, in order. */
export class NumberedSends {
  /** The last number that was accepted, or refused permanently. */
  accepted: number
  /** The outcomes of the last accepted sends, in order; undefined while answers of other nodes are pending. */
  #outcomes: (Outcome | undefined)[]
  #unsettled = 0
  #onSettled: (() => void)[] = []

  constructor(state: SendsState = { accepted: 0, outcomes: [] }) {
    this.accepted = state.accepted
    this.#outcomes = state.outcomes.map(([delivered, held]) => ({ delivered, held }))
  }

  /** Accepts the next number. */
  accept(seq: number): void {
    this.accepted = seq
    this.#unsettled++
    if (this.#outcomes.push(undefined) > KEPT_OUTCOMES) this.#outcomes.shift()
  }

  /**
   * Refuses the next number permanently: that consumes it, so that later sends need not be renumbered. Ignores any
   * other number.
   */
  refuse(seq: number): void {
    if (seq !== this.accepted + 1) return
    this.accept(seq)
    this.setOutcome(seq, NO_RECEIVERS)
  }

  setOutcome(seq: number, outcome: Outcome): void {
    const index = this.#indexOf(seq)
    if (index >= 0) this.#outcomes[index] = outcome
    if (--this.#unsettled === 0) for (const resolve of this.#onSettled.splice(0)) resolve()
  }

  /** The outcome of an accepted number; undefined while it is pending, NO_RECEIVERS once it is no longer kept. */
  outcomeOf(seq: number): Outcome | undefined {
    const index = this.#indexOf(seq)
    return index < 0 ? NO_RECEIVERS : this.#outcomes[index]
  }

  /** Resolves when all outcomes are known. */
  settled(): Promise<void> {
    return this.#unsettled === 0 ? Promise.resolve() : new Promise(resolve => this.#onSettled.push(resolve))
  }

  /** The state for the node that the connection moves to; complete only when all outcomes are known. */
  state(): SendsState {
    const outcomes = this.#outcomes.map(outcome => outcome ?? NO_RECEIVERS)
    return {
      accepted: this.accepted,
      outcomes: outcomes.map(({ delivered, held }) => [delivered, held]),
    }
  }

  #indexOf(seq: number): number {
    return this.#outcomes.length - 1 - (this.accepted - seq)
  }
}
