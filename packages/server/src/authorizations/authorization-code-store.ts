import type { Instant } from '../clock.ts'
import type { AuthorizationCode } from './authorization-code.ts'

export interface AuthorizationCodeStore {
  /** False, and nothing written, if a code answers the same pushed request already. */
  insert(code: AuthorizationCode): Promise<boolean>
  find(codeHash: string): Promise<AuthorizationCode | null>
  /**
   * Marks the code as redeemed by this session. Of any number of callers one gets the code; the others, and everybody
   * from its `expiresAt` on, get null.
   */
  consume(codeHash: string, sessionId: string, at: Instant): Promise<AuthorizationCode | null>
  prune(createdBefore: Instant, batch: number): Promise<number>
}
