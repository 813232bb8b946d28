import type { Instant } from '../clock.ts'
import type { WrongCode } from './code-limits.ts'

/** Wrong codes, kept for a day. The limits of code-limits.ts bound the number of rows. */
export interface WrongCodeStore {
  /** Until the transaction ends, no other code is checked on any node. */
  lock(): Promise<void>
  /** Wrong codes after `since`: all from unrecognised browsers, and those from recognised ones for the mailbox. */
  counted(mailbox: string, since: Instant): Promise<WrongCode[]>
  insert(wrong: WrongCode): Promise<void>
  exists(id: string): Promise<boolean>
  /** Deletes the wrong codes of a link, after the person who typed them proved to read its mail. */
  forgive(linkId: string): Promise<void>
  /**
   * Gives the mailbox its full limits again: deletes its wrong codes from recognised browsers, and takes the mailbox off
   * the others, which count on for the networks and the whole service.
   */
  clearMailbox(mailbox: string): Promise<void>
  /** Deletes those before `before`, at most `batch`. Returns how many. */
  prune(before: Instant, batch: number): Promise<number>
}
