import { toRfc3339 } from '../clock.ts'
import { addressBucketName, returningBucket, WINDOW_LENGTHS } from '../magic-links/send-limits.ts'
import type { Services } from '../services.ts'
import type { EmailAddress } from '../users/email-address.ts'

/** How full each window of an address is, and when a full one has room again. */
export async function sendWindows({ storage, clock, config }: Services, email: EmailAddress) {
  const now = clock.now()
  const windows = config.magicLinkLimits
  const buckets = { address: addressBucketName(email), returning: returningBucket(email, []).name }
  const rows = []
  for (const [who, bucket] of Object.entries(buckets)) {
    for (const { window, limit } of windows) {
      const length = WINDOW_LENGTHS[window]
      const times = await storage.store.magicLinks.sendTimes(bucket, now - length, limit)
      const oldest = times.length === limit ? times.at(-1)! : null
      const freeAt = oldest === null ? null : toRfc3339(oldest + length)
      rows.push({ who, window, used: times.length, limit, free_at: freeAt })
    }
  }
  return rows
}
