import { test } from 'node:test'
import { checkPresence } from './support/presence-history.ts'

const SEEDS = Number(process.env.PRESENCE_SEEDS ?? 10_000)

test(`what watchers receive has no gap and no stale connection in ${SEEDS} random histories`, {
  timeout: 3_600_000,
}, async () => {
  for (let seed = 1; seed <= SEEDS; seed++) await checkPresence(seed)
})
