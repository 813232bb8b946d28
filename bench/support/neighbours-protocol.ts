/** A job of the neighbours process: the load of users who are not the attacker. */
export interface NeighboursJob {
  port: number
  durationMs: number
  /** Keys of other users than the attacker, used in turn. */
  keys: string[]
  /** Two tokens of one owner: messages go from the first connection to the second. */
  agents: { fromToken: string; toToken: string }
  /** Users with one link each, who sign in one after another. */
  signIns: { email: string; token: string }[]
}

export const KINDS = ['exchange', 'send', 'verify', 'message'] as const
export type Kind = (typeof KINDS)[number]
export type NeighboursResult = Record<Kind, UserLatencies>

export interface UserLatencies {
  count: number
  errors: number
  /** The first error. */
  error?: string
  /** Milliseconds; the timeout of 5000 if no call succeeded. */
  p50: number
  p99: number
}

/** The token that bare-node.ts gives out and accepts. */
export const BARE_TOKEN = 'bare'

/** Sign-in links that are requested in each second; as many others are verified. */
export const SIGN_INS_PER_SECOND = 20
