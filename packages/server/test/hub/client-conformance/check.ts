import type { Program } from './program.ts'
import type { ScriptedHub } from './scripted-hub.ts'

export interface Trial {
  hub: ScriptedHub
  program: Program
}

export interface ClientCheck {
  /** Of docs/hub-protocol.md. */
  section: string
  promise: string
  /** Before the program starts. */
  prepare?(hub: ScriptedHub): void
  /** @throws Error that says what the client did wrong, or `NotSupported` */
  run(trial: Trial): Promise<void>
}

/** The client does not do what is optional, as far as the check can see. */
export class NotSupported extends Error {}
