import { CannotStart } from '../operator-error.ts'

/** An invalid value. The message continues a sentence that begins with the setting's name. */
export class Mistake extends Error {
  override readonly name = 'Mistake'
}

/** Mistakes in the settings; each is one or two sentences with what to do. */
export class ConfigError extends CannotStart {
  override readonly name = 'ConfigError'
  readonly mistakes: string[]

  constructor(mistakes: string[]) {
    super(
      mistakes.length === 1
        ? mistakes[0]
        : `${mistakes.length} settings need attention:\n${mistakes.map(mistake => `- ${mistake}`).join('\n')}`,
    )
    this.mistakes = mistakes
  }
}
