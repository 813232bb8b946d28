import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { MISTAKES } from '../../../../tools/mistakes/mistakes.ts'
import { BROKEN_VARIANTS, changeOf } from '../simulation/broken.ts'
import { root } from './source.ts'

const PACKAGES = join(root, 'packages')

test('each mistake that npm run test:mistakes puts into the code has its place there, and its tests', () => {
  for (const { name, file, edits, tests } of MISTAKES) {
    const source = readFileSync(join(PACKAGES, file), 'utf8')
    for (const { find } of edits)
      assert.equal(source.split(find).length, 2, `${name}: ${file} must have ${JSON.stringify(find)} once`)
    for (const pattern of tests)
      assert.ok(globSync(pattern, { cwd: PACKAGES }).length > 0, `${name}: ${pattern}`)
  }
})

test('each bug that npm run simulate -- --broken puts into the code has its place there', () => {
  for (const variant of BROKEN_VARIANTS) assert.doesNotThrow(() => changeOf(variant), variant.name)
})
