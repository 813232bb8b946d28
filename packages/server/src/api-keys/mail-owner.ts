import type { Instant } from '../clock.ts'
import type { MessageContent } from '../outbox/message.ts'
import type { Outbox } from '../outbox/outbox.ts'
import type { Transaction } from '../store.ts'
import type { ApiKey } from './api-key.ts'

/** Content of a mail about a key, without the fields that name the key. */
type AboutKey<Content = MessageContent> = Content extends { keyPrefix: string }
  ? Omit<Content, 'keyId' | 'keyPrefix' | 'keyName'>
  : never

/**
 * Queues a mail to the owner of a key, within the caller's transaction; queues none if the owner was deleted.
 *
 * @param mail.id created before the transaction, so that a retried transaction queues the mail once
 */
export async function mailOwner(
  tx: Transaction,
  outbox: Outbox,
  { id: keyId, userId, keyPrefix, name }: Pick<ApiKey, 'id' | 'userId' | 'keyPrefix' | 'name'>,
  { id, now, about }: { id: string; now: Instant; about: AboutKey },
): Promise<void> {
  const owner = await tx.users.find(userId)
  if (!owner?.email) return
  const content = { ...about, keyId, keyPrefix, keyName: name }
  await outbox.enqueue(tx, { id, recipient: owner.email, userId, content, now })
}
