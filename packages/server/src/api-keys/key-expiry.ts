import { type Clock, DAY, type Instant, toRfc3339 } from '../clock.ts'
import { keyEvent } from '../endings/webhook-events.ts'
import type { Storage } from '../store.ts'
import { EXPIRED } from './key-alert-store.ts'

/** Keys that expired longer ago than this are not announced. Long enough for the keys that expire during an outage. */
const MAX_ANNOUNCEMENT_DELAY = 3 * DAY
const BATCH = 100

/**
 * Announces expired keys to webhook endpoints, each key once over all nodes. Keys expire without a request, so expired
 * ones are polled for: only while an enabled webhook endpoint subscribes to `api_key.expired`, and only keys that
 * expired since the oldest such endpoint was created. Returns how many keys this call announced.
 */
export async function announceExpired({
  storage,
  clock,
}: {
  storage: Storage
  clock: Clock
}): Promise<number> {
  const now = clock.now()
  const since = await subscribedSince(storage)
  if (since === null) return 0
  let announcedCount = 0
  for (;;) {
    const keys = await storage.store.keyAlerts.listExpired(
      Math.max(since, now - MAX_ANNOUNCEMENT_DELAY),
      now,
      BATCH,
    )
    for (const key of keys) if (await announce(storage, key, now)) announcedCount++
    if (keys.length < BATCH) return announcedCount
  }
}

/** When the oldest enabled endpoint that subscribes to `api_key.expired` was created; null if there is none. */
async function subscribedSince(storage: Storage): Promise<Instant | null> {
  const subscribedEndpoints = (await storage.store.webhooks.list()).filter(
    ({ events, disabledAt }) =>
      disabledAt === null && (events.length === 0 || events.includes('api_key.expired')),
  )
  return subscribedEndpoints.length === 0
    ? null
    : Math.min(...subscribedEndpoints.map(({ createdAt }) => createdAt))
}

/** Announces an expiry unless another node already has; returns whether this call announced it. */
function announce(
  storage: Storage,
  { id, userId, expiresAt }: { id: string; userId: string; expiresAt: Instant },
  now: Instant,
): Promise<boolean> {
  return storage.transaction(async tx => {
    if (!(await tx.keyAlerts.claim(id, EXPIRED, expiresAt, now))) return false
    tx.announce(keyEvent('api_key.expired', id, userId, now, { expires_at: toRfc3339(expiresAt) }))
    return true
  })
}
