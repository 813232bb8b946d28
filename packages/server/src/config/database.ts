import { resolve } from 'node:path'
import type { Config } from '../config.ts'
import { Mistake } from './mistakes.ts'
import type { Parser } from './values.ts'

export const database: Parser<Config['database']> = text => {
  const file = /^sqlite:(?:\/\/)?(.+)$/s.exec(text)?.[1]
  if (file === ':memory:') throw new Mistake('cannot be :memory:, which forgets every account at the end')
  if (file) return { engine: 'sqlite', file: resolve(file) }
  return { engine: 'postgres', url: postgresUrl(text, 'sqlite:PATH or postgres://…') }
}

export const events: Parser<Config['events']> = text => {
  if (/^rediss?:\/\//.test(text) && URL.canParse(text)) return { kind: 'redis', url: text }
  return { kind: 'postgres', url: postgresUrl(text, 'redis://… or postgres://…') }
}

function postgresUrl(text: string, wanted: string): string {
  if (!/^postgres(ql)?:\/\//.test(text)) throw new Mistake(`must be ${wanted}`)
  if (!URL.canParse(text))
    throw new Mistake('is no address: percent-encode special characters of the user and the password')
  return text
}

/** Why database and events do not go together. */
export function databaseMistakes(config: Config): string[] {
  const isRefused = config.database.engine === 'sqlite' && config.events.kind !== 'in-process'
  return isRefused
    ? [
        'KEYWAY_EVENTS_URL joins several nodes, but SQLite serves one. Leave it out, or use PostgreSQL. ' +
          'Example: KEYWAY_DATABASE_URL=postgres://keyway:password@db.example.com/keyway',
      ]
    : []
}
