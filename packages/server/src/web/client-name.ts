import { texts } from '../languages/current.ts'

const BROWSERS: [RegExp, string][] = [
  [/Edg\//, 'Edge'],
  [/OPR\//, 'Opera'],
  [/Firefox\//, 'Firefox'],
  [/Chrome\//, 'Chrome'],
  [/Safari\//, 'Safari'],
]
const SYSTEMS: [RegExp, string][] = [
  [/Android/, 'Android'],
  [/iPhone|iPad/, 'iOS'],
  [/Windows/, 'Windows'],
  [/Mac OS X/, 'macOS'],
  [/Linux/, 'Linux'],
]
const MAX_LENGTH = 60

/** A short name of a client such as `Firefox on Linux`; for other programs, their own User-Agent. */
export function describeClient(client: string): string {
  const browser = BROWSERS.find(([pattern]) => pattern.test(client))?.[1]
  const system = SYSTEMS.find(([pattern]) => pattern.test(client))?.[1]
  if (!browser) return client.length > MAX_LENGTH ? `${client.slice(0, MAX_LENGTH - 1)}…` : client
  return system ? texts.units.browserOn({ browser, system }) : browser
}
