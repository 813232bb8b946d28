import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { describe, test } from 'node:test'
import { configurationDocument } from '../../src/config/documentation.ts'
import { type Setting, settings } from '../../src/config/settings.ts'
import { filesOf, root, sourceFiles, src } from './source.ts'

/** Files whose code, without comments, matches `pattern`, except those in `mayMatch`. */
async function violations(pattern: RegExp, mayMatch: RegExp): Promise<string[]> {
  const files = await sourceFiles()
  return files
    .filter(file => !mayMatch.test(relative(src, file.path)) && pattern.test(withoutComments(file.text)))
    .map(file => relative(src, file.path))
}

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '')
}

// web/docs/examples.ts is excepted, since its code is shown on pages and not run by the server.
describe('forbidden constructs', () => {
  test('only clock.ts reads the time of day', async () => {
    assert.deepEqual(await violations(/\bDate\.now\(\)|new Date\(\)/, /^clock\.ts$/), [])
  })

  test('only config.ts reads the environment', async () => {
    assert.deepEqual(await violations(/process\.env\b/, /^(config|web\/docs\/examples)\.ts$/), [])
  })

  test('only storage/ uses a database', async () => {
    assert.deepEqual(await violations(/from '(kysely|pg|node:sqlite)|sql`/, /^storage\//), [])
  })

  test('only mail/ sends mail', async () => {
    assert.deepEqual(
      await violations(
        /from 'nodemailer|(?:await|return) fetch\(/,
        /^(mail\/|operations\/installation-checks|web\/docs\/examples)/,
      ),
      [],
    )
  })

  test('log messages are constant, so that lines of one kind can be counted', async () => {
    assert.deepEqual(
      await violations(/\blog\.(?:info|warn|error)\((?:[^()]|\([^()]*\))*?,\s*`/, /^cli\//),
      [],
    )
  })

  test('no file has a default export', async () => {
    assert.deepEqual(await violations(/^export default\b/m, /^$/), [])
  })
})

test('docs/configuration.md is up to date (npm run docs)', async () => {
  assert.equal(await readFile(join(root, 'docs/configuration.md'), 'utf8'), configurationDocument())
})

test('every example and default of a setting is valid', () => {
  for (const [name, setting] of Object.entries<Setting<unknown>>(settings)) {
    if (setting.default !== null) assert.doesNotThrow(() => setting.parse(setting.default!), name)
    if (!setting.example.startsWith('<')) assert.doesNotThrow(() => setting.parse(setting.example), name)
  }
})

test('every decision has a number of its own, the same in its name and in its title', async () => {
  const folder = join(root, 'docs/decisions')
  const numbers = new Map<number, string>()
  for (const name of await readdir(folder)) {
    const number = Number(name.slice(0, 4))
    assert.equal(numbers.get(number), undefined, `${name} has the number of another decision`)
    numbers.set(number, name)
    assert.match(await readFile(join(folder, name), 'utf8'), new RegExp(`^# ${number}\\. `), name)
  }
})

test('every decision that code or a document refers to has a record', async () => {
  const records = new Set((await readdir(join(root, 'docs/decisions'))).map(name => Number(name.slice(0, 4))))
  const files = await filesOf(root, '{packages/*/{src,test},bench,tools,docs,deploy}/**/*.{ts,js,py,md}')
  const documents = await filesOf(root, '*.md')
  const references = [...files, ...documents].flatMap(({ path, text }) =>
    [...text.matchAll(/\bdecisions? (\d+(?:(?:, | and )\d+)*)|\bdecisions\/(\d{4})/g)].flatMap(
      ([, numbers, name]) =>
        (numbers ?? name!).split(/, | and /).map(number => ({ path, number: Number(number) })),
    ),
  )
  assert.ok(references.length >= 20, `only ${references.length} references are found`)
  assert.deepEqual(
    references.filter(({ number }) => !records.has(number)),
    [],
  )
})

test('files of the project are read through own-files.ts, since the single executable has them inside', async () => {
  const expressionsRewrittenByBundler =
    /createRequire\(import\.meta\.url\)\(|new Worker\(new URL\('[^']+', import\.meta\.url\)/g
  const files = (await sourceFiles()).filter(({ text }) =>
    text.replaceAll(expressionsRewrittenByBundler, '').includes('import.meta'),
  )
  assert.deepEqual(
    files.map(({ path }) => path.slice(src.length)),
    ['/own-files.ts'],
  )
})

test('every migration file is listed', async () => {
  const files = await filesOf(join(src, 'storage/migrations'), '*.ts')
  const migrationsText = files.map(file => file.text).join('\n')
  const migrations = files.map(file => file.path.split('/').at(-1)!).filter(name => /^\d/.test(name))
  assert.notEqual(migrations.length, 0)
  assert.deepEqual(
    migrations.filter(name => !migrationsText.includes(`./${name}'`)),
    [],
  )
})

for (const [document, least] of [
  ['docs/contract.md', 20],
  ['SECURITY.md', 20],
  ['docs/hub-protocol.md', 10],
] as const) {
  test(`${document} names tests that exist`, async () => {
    const text = await readFile(join(root, document), 'utf8')
    const tests = await filesOf(join(root, 'packages'), '*/test/**/*.{test,slow}.ts')
    const namedTests = [...text.matchAll(/`([\w/.-]+\.(?:test|slow)\.ts)`(?: “([^”]+)”)?/g)]
    assert.ok(namedTests.length >= least, `only ${namedTests.length} tests are named`)
    const unknownTests = namedTests.filter(([, file, title]) => {
      const found = tests.find(each => each.path.endsWith(`/test/${file}`))
      return !found || (title !== undefined && !found.text.includes(title))
    })
    assert.deepEqual(
      unknownTests.map(([whole]) => whole),
      [],
    )
  })
}
