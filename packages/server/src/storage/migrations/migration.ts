import type { Kysely } from 'kysely'

/** Row types change between migrations, so migrations use an untyped query builder. */
export type Untyped = Kysely<Record<string, Record<string, unknown>>>

export interface MigrationDeps {
  db: Untyped
  /** See `Engine.binaryCollation`. */
  binaryCollation: string
  /** Executes the statements of `Engine.appendOnly`. */
  appendOnly(table: string, mayDelete?: string): Promise<void>
  /** Executes the statements of `Engine.trigramIndex`. */
  trigramIndex(name: string, table: string, column: string): Promise<void>
  /** Executes the statements of `Engine.refuseTruncate`. */
  refuseTruncate(table: string): Promise<void>
}

export interface Migration {
  /**
   * Starts with a number, by which migrations are ordered. A released name never changes, since databases record the
   * names of applied migrations.
   */
  name: string
  up(deps: MigrationDeps): Promise<void>
}

/**
 * Defines a schema migration. It may only add tables, indexes, and columns that are nullable or have a default, so that
 * nodes of the previous version keep working during a rolling update.
 */
export function defineMigration(name: string, up: Migration['up']): Migration {
  return { name, up }
}
