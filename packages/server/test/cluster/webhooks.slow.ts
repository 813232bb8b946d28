import { describe, test } from 'node:test'
import { postgresMissing } from '../support/engines.ts'
import { deliverThroughCrashes } from './webhooks-crash.ts'

describe('webhooks over killed nodes', { skip: postgresMissing(), timeout: 3_600_000 }, () => {
  test(
    '10,000 events reach a randomly failing endpoint at least once and in the order of their subject, and never a forbidden address',
    { timeout: 3_600_000 },
    t => deliverThroughCrashes(t, { acts: 10_000, subjects: 250, nodes: 3, kills: 12, patience: 600_000 }),
  )
})
