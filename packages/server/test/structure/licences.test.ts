import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { licenceText, licenceTexts } from '../../../../tools/binary/licences.ts'
import { shippedPackages } from '../../../../tools/shipped-packages.ts'
import { ALLOWED_LICENCES, licencesDocument } from '../support/licences.ts'
import { root } from './source.ts'

test('every shipped package has an allowed licence', () => {
  const packages = shippedPackages()
  assert.ok(packages.length > 10)
  assert.deepEqual(
    packages.filter(({ licence }) => !ALLOWED_LICENCES.has(licence)),
    [],
  )
})

test('every component of the single executable has a licence text, and so have the libraries inside', () => {
  const texts = licenceTexts()
  assert.match(texts, /^Node\.js is licensed for use as follows:$/m)
  assert.match(texts, /^- OpenSSL, located at deps\/openssl, is licensed as follows:$/m)
  assert.match(texts, /^Node\.js contains libffi:$/m)
  assert.match(texts, /^sodium-native contains libsodium:$/m)
})

test('a component of the single executable without a licence text is an error that names it', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'keyway-licences-'))
  try {
    await writeFile(join(folder, 'package.json'), '{"version":"1.2.3"}')
    const component = { name: 'nameless', version: '1.2.3', folder }
    assert.throws(() => licenceText(component), /nameless 1\.2\.3 has no licence text/)
    await writeFile(join(folder, 'LICENSE.md'), 'Do what you like.')
    assert.equal(licenceText(component), '==== nameless 1.2.3 ====\n\nDo what you like.\n')
    assert.throws(
      () => licenceText({ ...component, version: '1.2.4' }),
      /nameless 1\.2\.4 .* 1\.2\.3 is installed/,
    )
  } finally {
    await rm(folder, { recursive: true })
  }
})

test('docs/licences.md lists what is shipped (npm run docs)', async () => {
  assert.equal(await readFile(join(root, 'docs/licences.md'), 'utf8'), licencesDocument())
})

test('no shipped package runs a script when it is installed, node excepted', async () => {
  const lock = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { hasInstallScript?: boolean }>
  }
  const packagesWithScript = Object.entries(lock.packages).filter(
    ([, { hasInstallScript }]) => hasInstallScript,
  )
  assert.deepEqual(
    packagesWithScript.map(([path]) => path),
    ['node_modules/node'],
  )
})

test('installing with the oldest supported Node 20 warns of no engine, since the packages run with the Node that is installed', async () => {
  const lock = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { engines?: { node?: string } }>
  }
  const packagesForNewerNode = Object.entries(lock.packages).filter(([, { engines }]) =>
    />=? ?2[1-9]/.test(engines?.node ?? ''),
  )
  assert.deepEqual(
    packagesForNewerNode.map(([path]) => `remove "engines" of ${path} from package-lock.json (decision 1)`),
    [],
  )
})
