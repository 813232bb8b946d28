import type { Instant } from '../clock.ts'
import type { WrongCode } from './code-limits.ts'

/** Wrong codes, kept for a day. The limits of code-limits.ts bound the number of rows. */
export interface WrongCodeStore {
  /** Blocks code checks on all nodes until the transaction ends. */
  lock(): Promise<void>
  /**
   * The wrong codes after `since` that count for a code of this mailbox: all from unrecognised browsers, and those for
   * this mailbox from recognised ones, in which someone signed in to its address before.
   */
  findCounted(mailbox: string, since: Instant): Promise<WrongCode[]>
  insert(wrong: WrongCode): Promise<void>
  exists(id: string): Promise<boolean>
  /** Deletes the wrong codes of a link, once the person who typed them has proved to be the recipient of its mail. */
  forgive(linkId: string): Promise<void>
  /**
   * Resets the limits of a mailbox: deletes its wrong codes from recognised browsers, and keeps its other wrong codes
   * without the mailbox, since they still count for their networks and the whole service.
   */
  clearMailbox(mailbox: string): Promise<void>
  /** Deletes at most `batch` wrong codes that are older than `before`. Returns how many it deleted. */
  prune(before: Instant, batch: number): Promise<number>
}
