import type { Kysely } from 'kysely'

/** Tables change from one migration to the next, so a migration knows no row types but what it says itself. */
export type Untyped = Kysely<Record<string, Record<string, unknown>>>

export interface MigrationDeps {
  db: Untyped
  /** No row of it changes or goes any more. */
  appendOnly(table: string): Promise<void>
  /** Nor all rows at once. For a table that is append-only already. */
  refuseTruncate(table: string): Promise<void>
}

export interface Migration {
  /** Sorts by its number; never renamed once released. */
  name: string
  up(deps: MigrationDeps): Promise<void>
}

/**
 * A step of the schema. It only adds (tables, columns that may be null or have a default, indexes), so that a
 * node of the version before goes on working during a rolling update.
 */
export function defineMigration(name: string, up: Migration['up']): Migration {
  return { name, up }
}
