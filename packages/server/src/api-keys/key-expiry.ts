import { type Clock, DAY, type Instant, toRfc3339 } from '../clock.ts'
import { ofKey } from '../endings/webhook-events.ts'
import type { Storage } from '../store.ts'
import { EXPIRED } from './key-alert-store.ts'

/** What expired longer ago is not told of any more. Longer than an outage. */
const TOLD_WITHIN = 3 * DAY
const BATCH = 100

/**
 * Announces keys that have expired, once each over all nodes. No act makes a key expire, so they are looked for; only
 * while an endpoint listens, and only those that expired since it was created.
 */
export async function announceExpired({
  storage,
  clock,
}: {
  storage: Storage
  clock: Clock
}): Promise<number> {
  const now = clock.now()
  const since = await listenedSince(storage)
  if (since === null) return 0
  let announced = 0
  for (;;) {
    const keys = await storage.store.keyAlerts.listExpired(Math.max(since, now - TOLD_WITHIN), now, BATCH)
    for (const key of keys) if (await announce(storage, key, now)) announced++
    if (keys.length < BATCH) return announced
  }
}

/** Null if nobody listens. */
async function listenedSince(storage: Storage): Promise<Instant | null> {
  const listening = (await storage.store.webhooks.list()).filter(
    ({ events, disabledAt }) =>
      disabledAt === null && (events.length === 0 || events.includes('api_key.expired')),
  )
  return listening.length === 0 ? null : Math.min(...listening.map(({ createdAt }) => createdAt))
}

function announce(
  storage: Storage,
  { id, userId, expiresAt }: { id: string; userId: string; expiresAt: Instant },
  now: Instant,
): Promise<boolean> {
  return storage.transaction(async tx => {
    if (!(await tx.keyAlerts.claim(id, EXPIRED, expiresAt, now))) return false
    tx.announce(ofKey('api_key.expired', id, userId, now, { expires_at: toRfc3339(expiresAt) }))
    return true
  })
}
