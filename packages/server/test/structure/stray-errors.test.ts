import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { root } from './source.ts'

const RUNNER = join(root, 'packages/server/test/support/run-tests.ts')
const FIXTURE = 'packages/server/test/structure/stray-error-fixture.ts'

function runFixture(kindOfError: string): Promise<{ failed: boolean; stdout: string }> {
  // With NODE_TEST_CONTEXT the inner runner would report its tests as part of this test.
  const { NODE_TEST_CONTEXT, ...env } = process.env
  return new Promise(resolve =>
    execFile(
      process.execPath,
      [RUNNER, FIXTURE],
      { env: { ...env, STRAY_ERROR: kindOfError } },
      (error, stdout) => resolve({ failed: error !== null, stdout }),
    ),
  )
}

test('an unhandled error outside any test fails the run', async () => {
  const kindsOfErrors = ['a rejection', 'a throw', 'a late rejection', '']
  const runs = await Promise.all(kindsOfErrors.map(runFixture))
  for (const [index, { failed, stdout }] of runs.entries()) {
    const strayError = kindsOfErrors[index]!
    assert.equal(failed, strayError !== '', `${strayError || 'none'}: ${stdout}`)
    assert.ok(stdout.includes(strayError), stdout)
  }
})
