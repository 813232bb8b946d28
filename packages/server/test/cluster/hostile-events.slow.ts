import { describe, test } from 'node:test'
import { postgresMissing } from '../support/engines.ts'
import { redisMissing } from '../support/redis.ts'
import { fuzzEvents } from './hostile-events.ts'

const NOTIFICATION_COUNT = 100_000

describe('an attacker on the event carrier', {
  timeout: 600_000,
  skip: postgresMissing() || redisMissing(),
}, () => {
  for (const carrier of ['PostgreSQL', 'Redis'] as const) {
    test(`${NOTIFICATION_COUNT} forged notifications on ${carrier} have no effect`, t =>
      fuzzEvents(t, carrier, NOTIFICATION_COUNT))
  }
})
