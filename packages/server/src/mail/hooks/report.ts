import type { SuppressionReason } from '../../outbox/suppression.ts'

/** What a provider reports: these addresses take no mail, or want none. */
export interface Report {
  addresses: string[]
  reason: SuppressionReason
}

/** `forged`: nothing proves that the provider sent it. `unreadable`: it did, and it is not a JSON object. */
export type HookReading = Report | 'forged' | 'unreadable' | 'irrelevant'

/** The members of a JSON object, or null. */
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
