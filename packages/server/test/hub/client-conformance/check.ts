import type { Program } from './program.ts'
import type { ScriptedHub } from './scripted-hub.ts'

export interface Trial {
  hub: ScriptedHub
  program: Program
}

export interface ClientCheck {
  /** Section number of docs/hub-protocol.md. */
  section: string
  promise: string
  /** Runs before the client starts. */
  prepare?(hub: ScriptedHub): void
  /** @throws Error that says what the client did wrong, or `NotSupported` */
  run(trial: Trial): Promise<void>
}

/** Thrown when the client does not implement an optional part, as far as the check can see. */
export class NotSupported extends Error {}
