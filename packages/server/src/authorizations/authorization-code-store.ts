import type { Instant } from '../clock.ts'
import type { AuthorizationCode } from './authorization-code.ts'

export interface AuthorizationCodeStore {
  /** Returns false and writes nothing if the pushed request of this code has been answered by another code. */
  insert(code: AuthorizationCode): Promise<boolean>
  find(codeHash: string): Promise<AuthorizationCode | null>
  /**
   * Marks the code as redeemed by this session. Exactly one caller gets the code; all others, and every caller from
   * `expiresAt` on, get null.
   */
  consume(codeHash: string, sessionId: string, at: Instant): Promise<AuthorizationCode | null>
  prune(createdBefore: Instant, batch: number): Promise<number>
}
