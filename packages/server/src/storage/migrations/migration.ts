import type { Kysely } from 'kysely'

/** Tables change from one migration to the next, so a migration knows no row types but what it says itself. */
export type Untyped = Kysely<Record<string, Record<string, unknown>>>

export interface Migration {
  /** Sorts by its number; never renamed once released. */
  name: string
  up(deps: { db: Untyped; appendOnly(table: string): Promise<void> }): Promise<void>
}

/**
 * A step of the schema. It only adds (tables, columns that may be null or have a default, indexes), so that a
 * node of the version before goes on working during a rolling update.
 */
export function defineMigration(name: string, up: Migration['up']): Migration {
  return { name, up }
}
