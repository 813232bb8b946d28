/** What the bench tells the neighbours of an attacker, and what they answer. */
export interface NeighboursOrder {
  port: number
  durationMs: number
  /** Keys of others than the attacker's; one is used after the other. */
  keys: string[]
  /** Two tokens of one owner: messages go from the first connection to the second. */
  agents: { fromToken: string; toToken: string }
  /** People with a link each; one of them signs in after the other. */
  signIns: { email: string; token: string }[]
}

export const KINDS = ['exchange', 'send', 'verify', 'message'] as const
export type Kind = (typeof KINDS)[number]
export type NeighboursResult = Record<Kind, Experience>

export interface Experience {
  count: number
  errors: number
  /** What the first error was. */
  error?: string
  /** Milliseconds. */
  p50: number
  p99: number
}

/** Sends and verifies, each. */
export const SIGN_INS_PER_SECOND = 10
