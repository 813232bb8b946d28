import type { Instant } from '../clock.ts'
import type { WrongCode } from './code-limits.ts'

/** Codes that were checked and wrong. As many rows as the bounds of code-limits.ts allow, for a day. */
export interface WrongCodeStore {
  /** Until the transaction ends no other code is checked, on any node. */
  lock(): Promise<void>
  /** After `since`: all of strangers, and those that returning browsers typed for the mailbox. */
  counted(mailbox: string, since: Instant): Promise<WrongCode[]>
  insert(wrong: WrongCode): Promise<void>
  exists(id: string): Promise<boolean>
  /** Forgets the wrong codes of a link: who typed them proved to read its mail. */
  forgive(linkId: string): Promise<void>
  /** Removes those before `before`, at most `batch`. Returns how many. */
  prune(before: Instant, batch: number): Promise<number>
}
