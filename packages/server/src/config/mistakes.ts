import { CannotStart } from '../operator-error.ts'

/** Why a text is no value of its setting: the rest of a sentence that begins with the setting's name. */
export class Mistake extends Error {
  override readonly name = 'Mistake'
}

/** What stands between the settings and a start; each mistake is one sentence or two with what to do. */
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
