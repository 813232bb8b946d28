import { nearestName } from '../nearest-name.ts'
import { type Setting, type SettingName, settings } from './settings.ts'

/** Messages about unknown variables: a mistyped name would silently leave the default in force. */
export function unknownSettings(environment: NodeJS.ProcessEnv): string[] {
  const knownNames = new Set<string>()
  for (const [name, setting] of Object.entries<Setting<unknown>>(settings)) {
    knownNames.add(name)
    if (setting.secret) knownNames.add(`${name}_FILE`)
  }
  return Object.keys(environment)
    .filter(name => name.startsWith('KEYWAY_') && !knownNames.has(name) && !isIgnored(name))
    .map(name => {
      const likelyName = nearestName(name, [...knownNames], Math.max(3, (name.length - 'KEYWAY_'.length) / 3))
      return `${name} is not a setting${likelyName ? `: did you mean ${likelyName}?` : '.'} Example: ${exampleFor(likelyName)}`
    })
}

/** Variables of the SDK and of the examples, which are set where a client runs on the machine of the service. */
const CLIENT_VARIABLES = [
  'KEYWAY_API_KEY',
  'KEYWAY_URL',
  'KEYWAY_APP_ID',
  'KEYWAY_APP_SECRET',
  'KEYWAY_AUDIENCE',
]

function isIgnored(name: string): boolean {
  return CLIENT_VARIABLES.includes(name) || isServiceLink(name, '')
}

function exampleFor(name: string | null): string {
  if (name?.endsWith('_FILE')) return `${name}=/run/secrets/${name.slice(0, -5).toLowerCase()}`
  const setting: Setting<unknown> = settings[(name ?? 'KEYWAY_PUBLIC_URL') as SettingName]
  return `${name ?? 'KEYWAY_PUBLIC_URL'}=${setting.example}`
}

/** Whether the variable is one of those that Kubernetes sets in pods for a service named "keyway". */
export function isServiceLink(name: string, value: string): boolean {
  if (name === 'KEYWAY_PORT') return /^(tcp|udp|sctp):\/\//.test(value)
  return /^KEYWAY_(SERVICE_(HOST|PORT)|PORT_\d+_)/.test(name)
}
