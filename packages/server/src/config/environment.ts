import { Mistake } from './mistakes.ts'
import { readSecretFile } from './secret-file.ts'
import { type Setting, settings, type Values } from './settings.ts'
import { isServiceLink, unknownSettings } from './unknown-settings.ts'

/** Parses every setting. An invalid one gets its default, so that all mistakes are found in one pass. */
export function readSettings(environment: NodeJS.ProcessEnv): { values: Values; mistakes: string[] } {
  const mistakes = unknownSettings(environment)
  const values: Record<string, unknown> = {}
  for (const [name, setting] of Object.entries<Setting<unknown>>(settings)) {
    values[name] = setting.default === null ? undefined : setting.parse(setting.default)
    try {
      const text = textOf(name, setting, environment)
      if (text !== undefined) values[name] = setting.parse(text)
    } catch (error) {
      if (!(error instanceof Mistake)) throw error
      mistakes.push(`${name} ${error.message}. Example: ${name}=${setting.example}`)
    }
  }
  return { values: values as Values, mistakes }
}

/**
 * The text of a setting; undefined if it is not set. An empty variable counts as not set, since compose files and unit
 * files unset variables that way, and so does one that Kubernetes sets for a service named "keyway" (`isServiceLink`).
 *
 * @throws Mistake for a secret file that cannot be read, is empty, or is named besides the variable itself
 */
function textOf(name: string, setting: Setting<unknown>, environment: NodeJS.ProcessEnv): string | undefined {
  const variable = environment[name]?.trim() || undefined
  const text = variable && isServiceLink(name, variable) ? undefined : variable
  const secret = setting.secret ? readSecretFile(name, text, environment) : undefined
  return secret ?? text ?? (setting.alias && (environment[setting.alias]?.trim() || undefined))
}
