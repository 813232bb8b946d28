import type { SuppressionReason } from '../../outbox/suppression.ts'

/** A provider's report that these addresses do not exist or do not want mail. */
export interface Report {
  addresses: string[]
  reason: SuppressionReason
}

/**
 * What a provider's call contains. `forged`: not authenticated by the provider. `unreadable`: not a JSON object.
 * `irrelevant`: an event after which mail to the addresses goes on.
 */
export type HookReading = Report | 'forged' | 'unreadable' | 'irrelevant'

/** Null if the body is not a JSON object. */
export function parseObject(body: Buffer): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(body.toString())
    return value !== null && typeof value === 'object' && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null
  } catch {
    return null
  }
}
