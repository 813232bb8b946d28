import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { filesOf, root } from './source.ts'

/** The number of the last requirement of levels 1 and 2 in each section, by chapter of ASVS 5.0.0. */
const LAST_REQUIREMENTS: Record<string, number[]> = {
  '1': [2, 9, 11, 3, 2],
  '2': [3, 3, 4, 1],
  '3': [0, 2, 4, 6, 5, 0, 2],
  '4': [3, 1, 2, 4],
  '5': [1, 3, 2, 3],
  '6': [3, 12, 4, 4, 5, 3, 0, 4],
  '7': [3, 4, 2, 5, 2, 2],
  '8': [2, 3, 1, 1],
  '9': [3, 4],
  '10': [2, 2, 4, 11, 5, 2, 3],
  '11': [2, 3, 3, 4, 1, 1],
  '12': [3, 2, 4],
  '13': [1, 5, 2, 5],
  '14': [2, 4, 3],
  '15': [3, 3, 7],
  '16': [1, 5, 4, 3, 3],
  '17': [1, 4, 2],
}

test('docs/asvs.md has every requirement of levels 1 and 2 once', async () => {
  const requiredIds = Object.entries(LAST_REQUIREMENTS).flatMap(([chapter, sections]) =>
    sections.flatMap((last, index) =>
      Array.from({ length: last }, (_, at) => `${chapter}.${index + 1}.${at + 1}`),
    ),
  )
  assert.equal(requiredIds.length, 253)
  const [, chapters = ''] = (await readFile(join(root, 'docs/asvs.md'), 'utf8')).split('\n## V1 ')
  const namedIds = [...chapters.matchAll(/^\| ([\d., ]+) \|/gm)].flatMap(([, ids]) => ids!.split(', '))
  assert.deepEqual(
    requiredIds.filter(id => !namedIds.includes(id)),
    [],
    'missing',
  )
  assert.deepEqual(
    namedIds.filter((id, at) => namedIds.indexOf(id) !== at || !requiredIds.includes(id)),
    [],
    'twice or unknown',
  )
})

test('docs/asvs.md names tests that exist', async () => {
  const text = await readFile(join(root, 'docs/asvs.md'), 'utf8')
  const tests = await filesOf(join(root, 'packages'), '*/test/**/*.test.ts')
  const unknownNames: string[] = []
  let count = 0
  for (const line of text.split('\n')) {
    let file: string | undefined
    for (const [, name, title] of line.matchAll(/`([\w/-]+\.test\.ts)`|“([^”]+)”/g)) {
      if (name) {
        file = tests.find(each => each.path.endsWith(`/test/${name}`))?.text
        if (file === undefined) unknownNames.push(name)
        count++
      } else if (title && file !== undefined && !file.includes(title)) unknownNames.push(title)
    }
  }
  assert.ok(count > 80, `${count} tests are named`)
  assert.deepEqual(unknownNames, [])
})
