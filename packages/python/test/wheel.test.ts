import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { promisify } from 'node:util'
import { Agent, CLOSE_CODES, HUB_PROTOCOL, Keyway } from '../../sdk/src/index.ts'
import { startKeyway } from '../../sdk/test/support/keyway-server.ts'
import { PYTHON, packageMissing } from '../../server/test/support/missing-servers.ts'
import { packWheel } from '../pack.ts'
import { environment, noPython, python, ROOT, virtualEnvironment } from './support/python.ts'

const run = promisify(execFile)
const noPytest = packageMissing('python3-pytest', [PYTHON, '-c', 'import pytest'])
const noMypy = packageMissing('mypy', [PYTHON, '-m', 'mypy', '--version'])
/** Python starts slowly on a busy machine. */
const SLOW_TEST = { timeout: 300_000 }

describe('the Python package', () => {
  test('passes its tests against a running service', {
    skip: noPython || noPytest,
    ...SLOW_TEST,
  }, async t => {
    const { url, command } = await startKeyway(t)
    await command('apps', 'add', 'printing', '--name', 'Printing')
    const secret = (await command('apps', 'secret', 'printing')).trim()
    const args = ['-m', 'pytest', '-q', '-p', 'no:cacheprovider', '-W', 'error::DeprecationWarning']
    const output = await python(args, { KEYWAY_TEST_URL: url, KEYWAY_TEST_APP: `printing:${secret}` })
    t.diagnostic(output.trim().split('\n').at(-1)!)
  })

  test('has complete types, for the oldest Python that it supports', {
    skip: noMypy,
    ...SLOW_TEST,
  }, async () => {
    await python(['-m', 'mypy', '--cache-dir=/dev/null', '--python-version', '3.10'])
  })

  test('has the same calls, codes and close codes as the npm package', { skip: noPython }, async () => {
    const program = `
import json, keyway
client = keyway.Keyway(url="https://keyway.example.com")
groups = ["api_keys", "sessions", "account", "agents", "apps"]
calls = lambda value: sorted(name for name in dir(value) if not name.startswith("_"))
print(json.dumps({
    "client": calls(client), "groups": {group: calls(getattr(client, group)) for group in groups},
    "agent": calls(keyway.Agent), "close_codes": keyway.CLOSE_CODES, "protocol": keyway.HUB_PROTOCOL}))`
    const pythonPackage = JSON.parse(await python(['-c', program], { PYTHONPATH: join(ROOT, 'src') }))
    const client = new Keyway({ url: 'https://keyway.example.com' })
    assert.deepEqual(without(pythonPackage.client, ['aclose']), callNamesOf(client))
    for (const group of ['apiKeys', 'sessions', 'account', 'agents', 'apps'] as const)
      assert.deepEqual(pythonPackage.groups[snakeCase(group)], callNamesOf(client[group]), group)
    const onlyIn = { javaScript: ['emit', 'listener_count', 'once'], python: ['run', 'start'] }
    assert.deepEqual(
      without(pythonPackage.agent, onlyIn.python),
      without(callNamesOf(Agent.prototype), onlyIn.javaScript),
    )
    const codes = Object.entries(CLOSE_CODES).map(([code, { reconnect }]) => [code, reconnect])
    assert.deepEqual(pythonPackage.close_codes, Object.fromEntries(codes))
    assert.equal(pythonPackage.protocol, HUB_PROTOCOL)
  })
})

describe('the wheel', () => {
  test('is reproducible, and has a version of its own for each build', async () => {
    const wheel = await packWheel()
    assert.deepEqual(await packWheel(), wheel)
    assert.match(wheel.version, /^\d+\.\d+\.\d+\+b[0-9a-f]{12}$/)
    const { version } = JSON.parse(readFileSync(join(ROOT, '../sdk/package.json'), 'utf8'))
    assert.equal(wheel.version.split('+')[0], version)
  })

  test('is served under an immutable address, to which /sdk.whl redirects, and pip installs it', {
    skip: noPython,
    ...SLOW_TEST,
  }, async t => {
    const { url } = await startKeyway(t)
    const { name, version, content } = await packWheel()
    const redirect = await fetch(`${url}/sdk.whl`, { redirect: 'manual' })
    assert.equal(redirect.status, 302)
    assert.equal(redirect.headers.get('location'), `/${name}`)
    const response = await fetch(`${url}/${name}`)
    assert.equal(response.headers.get('cache-control'), 'public, max-age=31536000, immutable')
    assert.deepEqual(Buffer.from(await response.arrayBuffer()), content)
    assert.equal((await fetch(`${url}/keyway-0.0.9-py3-none-any.whl`)).status, 404)

    const programs = await virtualEnvironment(t)
    const inVenv = (program: string, ...args: string[]) =>
      run(join(programs, program), args, { env: environment() })
    await inVenv('pip', 'install', '--quiet', `${url}/${name}`)
    const { stdout } = await inVenv('python', '-W', 'error', '-c', 'import keyway; print(keyway.__version__)')
    assert.equal(stdout.trim(), version)
    const description = (await inVenv('pip', 'show', '--files', 'keyway')).stdout
    assert.match(description, /^Requires: httpx, websockets$/m)
    assert.match(description, /^ {2}keyway\/py\.typed$/m)
    await inVenv('pip', 'install', '--quiet', '--upgrade', `${url}/${name}`)
    await inVenv('pip', 'uninstall', '--quiet', '--yes', 'keyway')
    await assert.rejects(inVenv('python', '-c', 'import keyway'))
  })
})

/** The names of an object's public methods and groups in snake_case, sorted. */
function callNamesOf(object: object): string[] {
  const names = new Set<string>()
  for (let each = object; each && each !== Object.prototype; each = Object.getPrototypeOf(each))
    for (const name of Object.getOwnPropertyNames(each)) names.add(name)
  return [...names]
    .filter(name => name !== 'constructor')
    .map(snakeCase)
    .sort()
}

const without = (names: string[], others: string[]) => names.filter(name => !others.includes(name))

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)
}
