import { test } from 'node:test'
import { newApiKey } from '../../src/api-keys/api-key.ts'
import { createLog } from '../../src/log.ts'

/* No test of the service: what secret-scan.test.ts lets the runner run, to see that it fails. */

test('tells the log a key, below the level that anybody reads', () => {
  const wanted = { name: null, scopes: null, expiresAt: null, appId: 'shop', allowedNetworks: [] }
  const { key } = newApiKey('nobody', wanted, 0)
  createLog('silent').debug({ presented: key }, 'refused')
})
