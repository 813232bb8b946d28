import { Mistake } from './mistakes.ts'
import { readSecretFile } from './secret-file.ts'
import { type Setting, type SettingName, settings, type Values } from './settings.ts'

export type Environment = Record<string, string | undefined>

/** Every setting parsed. One that was mistaken has its default, so that all mistakes are found in one go. */
export function readSettings(environment: Environment): { values: Values; mistakes: string[] } {
  const mistakes = unknownNames(environment)
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

/** Empty counts as not set: that is how compose files and unit files leave a variable out. */
function textOf(name: string, setting: Setting<unknown>, environment: Environment): string | undefined {
  const own = environment[name]?.trim() || undefined
  const text = own && isServiceLink(name, own) ? undefined : own
  const secret = setting.secret ? readSecretFile(name, text, environment) : undefined
  return secret ?? text ?? (setting.alias && (environment[setting.alias]?.trim() || undefined))
}

/** A mistyped name would silently leave its default in force, limits and secrets included. */
function unknownNames(environment: Environment): string[] {
  const known = new Set<string>()
  for (const [name, setting] of Object.entries<Setting<unknown>>(settings)) {
    known.add(name)
    if (setting.secret) known.add(`${name}_FILE`)
  }
  return Object.keys(environment)
    .filter(name => name.startsWith('KEYWAY_') && !known.has(name) && !isNotOurs(name))
    .map(name => {
      const nearest = nearestName(name, [...known])
      return `${name} is not a setting${nearest ? `: did you mean ${nearest}?` : '.'} Example: ${exampleFor(nearest)}`
    })
}

/** What a client of the service reads, on a machine that runs both. */
const CLIENT_VARIABLES = ['KEYWAY_API_KEY', 'KEYWAY_URL']

function isNotOurs(name: string): boolean {
  return CLIENT_VARIABLES.includes(name) || isServiceLink(name, '')
}

function exampleFor(name: string | null): string {
  if (name?.endsWith('_FILE')) return `${name}=/run/secrets/${name.slice(0, -5).toLowerCase()}`
  const setting: Setting<unknown> = settings[(name ?? 'KEYWAY_PUBLIC_URL') as SettingName]
  return `${name ?? 'KEYWAY_PUBLIC_URL'}=${setting.example}`
}

/** Kubernetes puts such variables beside a service called "keyway"; nobody typed them. */
function isServiceLink(name: string, value: string): boolean {
  if (name === 'KEYWAY_PORT') return /^(tcp|udp|sctp):\/\//.test(value)
  return /^KEYWAY_(SERVICE_(HOST|PORT)|PORT_\d+_)/.test(name)
}

function nearestName(name: string, known: readonly string[]): string | null {
  const ranked = known
    .map(candidate => ({ candidate, distance: editDistance(name, candidate) }))
    .sort((left, right) => left.distance - right.distance)
  const best = ranked[0]
  return best && best.distance <= Math.max(3, (name.length - 'KEYWAY_'.length) / 3) ? best.candidate : null
}

/** Levenshtein's, one row at a time. */
function editDistance(left: string, right: string): number {
  let row = Array.from({ length: right.length + 1 }, (_, index) => index)
  for (let i = 1; i <= left.length; i++) {
    const next = [i]
    for (let j = 1; j <= right.length; j++) {
      const change = row[j - 1]! + (left[i - 1] === right[j - 1] ? 0 : 1)
      next.push(Math.min(change, row[j]! + 1, next[j - 1]! + 1))
    }
    row = next
  }
  return row[right.length]!
}
