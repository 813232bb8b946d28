import type { MessageContent } from '../../outbox/message.ts'
import type { MailWriter } from '../../outbox/outbox.ts'
import { renderHtml } from './html.ts'
import { createEnglishWords, type Letter, type Words } from './letters.ts'
import { renderText } from './text.ts'

export interface MailWriterDeps {
  productName: string
  supportEmail: string
  /** Where the pages are that mails lead to. */
  publicUrl: string
}

/**
 * Writes mails as HTML and plain text. The same message is written the same on every attempt, and nothing that
 * a user chose stands in a mail to an address that nobody has confirmed.
 */
export function createMailWriter({ productName, supportEmail, publicUrl }: MailWriterDeps): MailWriter {
  const words = createEnglishWords(productName, {
    keys: `${publicUrl}/keys`,
    sessions: `${publicUrl}/sessions`,
  })
  const product = { name: productName, supportEmail }
  return ({ id, recipient, content }, hasAccount) => {
    const letter = chooseLetter(words, content, hasAccount)
    const { template, subject, link, code } = letter
    return {
      messageId: id,
      to: recipient,
      subject,
      text: renderText(letter, product),
      html: renderHtml(letter, product),
      template,
      link,
      code,
    }
  }
}

function chooseLetter(words: Words, content: MessageContent, hasAccount: boolean): Letter {
  switch (content.kind) {
    case 'sign_in':
      return words.signIn(content, hasAccount)
    case 'welcome':
      return words.welcome(content)
    case 'refresh_token_reused':
      return words.refreshTokenReused(content)
    case 'api_key_revoked_by_holder':
      return words.apiKeyRevokedByHolder(content)
    case 'api_key_expiring':
      return words.apiKeyExpiring(content)
    case 'api_key_used_again':
      return words.apiKeyUsedAgain(content)
    case 'test':
      return words.test()
  }
}
