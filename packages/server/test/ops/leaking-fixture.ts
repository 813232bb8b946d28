import { test } from 'node:test'
import { newApiKey } from '../../src/api-keys/api-key.ts'
import { createLog } from '../../src/log.ts'

/** Not a test of the service: secret-scan.test.ts runs it and expects the run to fail. */

test('logs an API key below the log level', () => {
  const newKey = { name: null, scopes: null, expiresAt: null, appId: 'shop', allowedNetworks: [] }
  const { key } = newApiKey('nobody', newKey, 0)
  createLog('silent').debug({ presented: key }, 'refused')
})
