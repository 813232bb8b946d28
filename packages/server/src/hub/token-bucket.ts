import { type Instant, SECOND } from '../clock.ts'

/** So much at once, so much a second. */
export interface Allowance {
  burst: number
  perSecond: number
}

/** A token bucket in two numbers. It may go into debt: what is taken is paid for before the next one passes. */
export interface Bucket {
  level: number
  filledAt: Instant
}

export function fullBucket(allowance: Allowance, now: Instant): Bucket {
  return { level: allowance.burst, filledAt: now }
}

export function refill(bucket: Bucket, allowance: Allowance, now: Instant): number {
  const gained = ((now - bucket.filledAt) / SECOND) * allowance.perSecond
  bucket.level = Math.min(allowance.burst, bucket.level + gained)
  bucket.filledAt = now
  return bucket.level
}
