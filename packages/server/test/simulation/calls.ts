import { KeywayError } from '../../src/errors.ts'
import type { Random } from '../support/random.ts'
import type { NodeServices, SimulatedNode } from './node.ts'
import type { Scheduler, SimulatedProcess } from './scheduler.ts'

const CALL_TIMEOUT_MS = 10_000

/** The client got no answer, so it does not know whether the call had an effect. */
export class LostAnswer extends Error {
  override readonly name = 'LostAnswer'
}

export type Ports = NonNullable<SimulatedNode['ports']> & NodeServices

/** The requests of clients, to any node; the network may lose the request or its answer. */
export class Calls {
  readonly #scheduler: Scheduler
  readonly #random: Random
  readonly #nodes: () => readonly SimulatedNode[]
  readonly #onUnexpected: (error: unknown) => void
  /** The share of requests, and of answers, that are lost. */
  loss = 0

  constructor(deps: {
    scheduler: Scheduler
    random: Random
    nodes(): readonly SimulatedNode[]
    onUnexpected(error: unknown): void
  }) {
    this.#scheduler = deps.scheduler
    this.#random = deps.random
    this.#nodes = deps.nodes
    this.#onUnexpected = deps.onUnexpected
  }

  /** @throws KeywayError if the service refuses, LostAnswer if the client gets no answer, or an unexpected error */
  request<Value>(
    client: SimulatedProcess,
    name: string,
    work: (ports: Ports) => Promise<Value>,
  ): Promise<Value> {
    const nodes = this.#nodes().filter(each => each.isReady && !each.isDraining)
    const node = nodes.length > 0 ? this.#random.pick(nodes) : null
    return new Promise((resolve, reject) => {
      const loseAnswer = () => reject(new LostAnswer(name))
      const cancel = this.#scheduler.after(client, CALL_TIMEOUT_MS, `${name} timed out`, loseAnswer)
      const answer = (settle: () => void) => {
        if (this.#random.next() < this.loss) return
        this.#scheduler.after(client, this.#latency(), `${name} answered`, () => {
          cancel()
          settle()
        })
      }
      if (!node) return answer(loseAnswer)
      if (this.#random.next() < this.loss) return
      this.#scheduler.after(node, this.#latency(), name, () => {
        work({ ...node.services!, ...node.ports! } as Ports).then(
          value => answer(() => resolve(value)),
          error => {
            if (!(error instanceof KeywayError)) this.#onUnexpected(error)
            answer(() => reject(error))
          },
        )
      })
    })
  }

  #latency(): number {
    return 0.2 + this.#random.next() * 20
  }
}

/**
 * The code of a refusal; `lost` if the outcome is unknown, as without an answer and after `unavailable`.
 *
 * @throws the given error, if it is neither a KeywayError nor a LostAnswer
 */
export function refusalOf(error: unknown): string {
  if (error instanceof LostAnswer) return 'lost'
  if (error instanceof KeywayError) return error.code === 'unavailable' ? 'lost' : error.code
  throw error
}
