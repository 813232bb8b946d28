import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { ALLOWED_LICENCES, licencesDocument, shippedPackages } from '../support/licences.ts'
import { root } from './source.ts'

test('every shipped package has an allowed licence', () => {
  const shipped = shippedPackages()
  assert.ok(shipped.length > 10)
  assert.deepEqual(
    shipped.filter(({ licence }) => !ALLOWED_LICENCES.has(licence)),
    [],
  )
})

test('docs/licences.md lists what is shipped (npm run docs)', async () => {
  assert.equal(await readFile(join(root, 'docs/licences.md'), 'utf8'), licencesDocument())
})

test('no shipped package runs a script when it is installed, node excepted', async () => {
  const lock = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { hasInstallScript?: boolean }>
  }
  const withInstallScript = Object.entries(lock.packages).filter(
    ([, { hasInstallScript }]) => hasInstallScript,
  )
  assert.deepEqual(
    withInstallScript.map(([path]) => path),
    ['node_modules/node'],
  )
})

test('installing with the oldest supported Node 20 warns of no engine, since the packages run with the Node that is installed', async () => {
  const lock = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { engines?: { node?: string } }>
  }
  const needingNewerNode = Object.entries(lock.packages).filter(([, { engines }]) =>
    />=? ?2[1-9]/.test(engines?.node ?? ''),
  )
  assert.deepEqual(
    needingNewerNode.map(([path]) => `remove "engines" of ${path} from package-lock.json (decision 1)`),
    [],
  )
})
