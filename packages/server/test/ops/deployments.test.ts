import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { settings } from '../../src/config/settings.ts'
import { loadConfig } from '../../src/config.ts'

const ROOT = join(import.meta.dirname, '../../../..')

test('every setting in a deployment exists', () => {
  const knownSettings = new Set(Object.entries(settings).flatMap(([name]) => [name, `${name}_FILE`]))
  const files = globSync('deploy/**/*.{yaml,service,sh}', { cwd: ROOT })
  assert.ok(files.length >= 3)
  for (const file of files) {
    const text = readFileSync(join(ROOT, file), 'utf8')
    const namedSettings = [...text.matchAll(/^\s*(?:- )?#?\s*(KEYWAY_[A-Z_]+)[:=]/gm)].map(
      ([, name]) => name!,
    )
    const unknownSettings = namedSettings.filter(name => !knownSettings.has(name) && name !== 'KEYWAY_DOMAIN')
    assert.deepEqual(unknownSettings, [], file)
  }
})

test('the settings of the example cluster are valid', () => {
  const text = readFileSync(join(ROOT, 'deploy/cluster/compose.yaml'), 'utf8')
  const exampleSettings = Object.fromEntries(
    [...text.matchAll(/^ {4}(KEYWAY_[A-Z_]+): (.+)$/gm)].map(([, name, value]) => [name!, value!]),
  )
  const config = loadConfig({ ...exampleSettings, KEYWAY_HOST: '0.0.0.0' })
  assert.equal(config.events.kind, 'redis')
  assert.equal(config.secrets[0]!.length >= 32, true)
})

test('the release workflow pins its actions, and runs scripts and files that exist', () => {
  const text = readFileSync(join(ROOT, '.github/workflows/release.yml'), 'utf8')
  const actions = [...text.matchAll(/uses: (\S+)/g)].map(([, action]) => action!)
  assert.ok(actions.length >= 4)
  for (const action of actions) assert.match(action, /@[0-9a-f]{40}$/)
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  for (const [, script] of text.matchAll(/npm run ([\w:]+)/g)) assert.ok(script! in scripts, script!)
  const files = [...text.matchAll(/(?:packages|tools|deploy|\.ci)\/[\w./-]+/g)].map(([file]) => file)
  assert.ok(files.length >= 4)
  for (const file of files) assert.ok(existsSync(join(ROOT, file)), file)
  assert.match(text, /^permissions: \{\}$/m, 'jobs have only the rights that they name')
})
