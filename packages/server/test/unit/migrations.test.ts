import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { test } from 'node:test'
import { MIGRATIONS } from '../../src/storage/migrations/index.ts'
import type { Migration } from '../../src/storage/migrations/migration.ts'

const FOLDER = new URL('../../src/storage/migrations/', import.meta.url)

test('every migration is listed in the order of its number, and its file and its own name are the same', async () => {
  const names = MIGRATIONS.map(({ name }) => name)
  const files = (await readdir(FOLDER)).filter(file => /^\d/.test(file)).sort()
  assert.deepEqual(
    files,
    names.map(name => `${name}.ts`),
  )
  for (const name of names) {
    const [migration] = Object.values(await import(new URL(`${name}.ts`, FOLDER).href)) as Migration[]
    assert.equal(migration!.name, name)
  }
})
