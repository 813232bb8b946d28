import { describe, test } from 'node:test'
import { postgresMissing } from '../support/engines.ts'
import { deliverThroughCrashes } from './webhooks-crash.ts'

describe('webhooks over killed nodes', { skip: postgresMissing() }, () => {
  test('events reach a randomly failing endpoint at least once and in the order of their subject, and never a forbidden address', t =>
    deliverThroughCrashes(t, { acts: 150, subjects: 30, nodes: 2, kills: 1, patience: 60_000 }))
})
