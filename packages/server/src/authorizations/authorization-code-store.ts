import type { Instant } from '../clock.ts'
import type { AuthorizationCode } from './authorization-code.ts'

export interface AuthorizationCodeStore {
  /** False, and nothing written, if a code answers the same pushed request already. */
  insert(code: AuthorizationCode): Promise<boolean>
  find(codeHash: string): Promise<AuthorizationCode | null>
  /**
   * Marks the code as used by this session. Null for all but one of any number of callers, and from its `expiresAt`
   * on.
   */
  consume(codeHash: string, sessionId: string, at: Instant): Promise<AuthorizationCode | null>
  prune(createdBefore: Instant, batch: number): Promise<number>
}
