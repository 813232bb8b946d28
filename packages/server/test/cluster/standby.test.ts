import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, test } from 'node:test'
import type { Finding } from '../../src/administration/finding.ts'
import { startPostgresServer } from '../faults/postgres-server.ts'
import { done, keyway } from '../support/command-line.ts'
import { postgresMissing } from '../support/engines.ts'
import { NODE_SETTINGS } from '../support/nodes.ts'
import { environment, launcher } from '../support/serve.ts'

describe('a standby', { skip: postgresMissing(), concurrency: true }, () => {
  for (const synchronous of [true, false]) {
    const title = synchronous
      ? 'that replicates synchronously passes doctor'
      : 'that replicates asynchronously is reported by doctor, since revocations may be lost'
    test(title, async t => {
      const primary = await startPostgresServer()
      t.after(() => primary.remove())
      const standby = await primary.startStandby(synchronous)
      t.after(() => standby.remove())
      const settings = { ...NODE_SETTINGS, KEYWAY_DATABASE_URL: primary.url }
      await done(keyway(settings, 'migrate'))
      const doctor = spawn(process.execPath, [launcher, 'doctor', '--json'], { env: environment(settings) })
      let output = ''
      doctor.stdout.on('data', chunk => {
        output += chunk
      })
      await once(doctor, 'close')
      const { findings } = JSON.parse(output) as { findings: Finding[] }
      const { ok, detail } = findings.find(each => each.check === 'standbys')!
      assert.equal(ok, synchronous)
      if (!ok) assert.match(detail, /KEYWAY_JOURNAL_DIR .* run "keyway journal replay" after a failover/)
      if (synchronous) await standby.promote()
    })
  }
})
