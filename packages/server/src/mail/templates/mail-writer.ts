import type { Brand } from '../../brand/brand.ts'
import { FALLBACK_LANGUAGE } from '../../languages/languages.ts'
import type { Localizations } from '../../languages/localization.ts'
import { lookUp } from '../../languages/negotiation.ts'
import type { MessageContent } from '../../outbox/message.ts'
import type { MailWriter } from '../../outbox/outbox.ts'
import { renderHtml } from './html.ts'
import { createTemplates, type TemplatedMail, type Templates } from './templates.ts'
import { renderText } from './text.ts'

export interface MailWriterDeps {
  localizations: Localizations
  productName: string
  supportEmail: string
  /** The origin of the pages that mails link to. */
  publicUrl: string
  brand: Brand
}

/**
 * Writes mails as HTML and plain text. Every delivery attempt renders the same message, unless the recipient got an
 * account or chose another language in between. A mail to an unconfirmed address contains no user-supplied text.
 */
export function createMailWriter({
  localizations,
  productName,
  supportEmail,
  publicUrl,
  brand,
}: MailWriterDeps): MailWriter {
  const pages = {
    keys: `${publicUrl}/keys`,
    sessions: `${publicUrl}/sessions`,
    account: `${publicUrl}/account`,
    webhooks: `${publicUrl}/admin/webhooks`,
  }
  return async ({ id, recipient, content, locale }, hasAccount) => {
    const localization = await localizations.in((locale && lookUp(locale)) || FALLBACK_LANGUAGE)
    const linkLabels = localization.texts.mails.links
    const product = { name: productName, supportEmail, publicUrl, brand, linkLabels }
    const mail = applyTemplate(createTemplates(localization, product, pages), content, hasAccount)
    const { template, subject, link, code } = mail
    return {
      messageId: id,
      to: recipient,
      subject,
      text: renderText(mail, product),
      html: renderHtml(mail, product, localization),
      template,
      link,
      code,
    }
  }
}

function applyTemplate(templates: Templates, content: MessageContent, hasAccount: boolean): TemplatedMail {
  switch (content.kind) {
    case 'sign_in':
      return templates.signIn(content, hasAccount)
    case 'invitation':
      return templates.invitation(content)
    case 'welcome':
      return templates.welcome(content)
    case 'refresh_token_reused':
      return templates.refreshTokenReused(content)
    case 'api_key_revoked_by_holder':
      return templates.apiKeyRevokedByHolder(content)
    case 'api_key_expiring':
      return templates.apiKeyExpiring(content)
    case 'api_key_used_again':
      return templates.apiKeyUsedAgain(content)
    case 'api_key_limit':
      return templates.apiKeyLimit(content)
    case 'api_key_new_network':
      return templates.apiKeyNewNetwork(content)
    case 'api_key_created_by_device':
      return templates.apiKeyCreatedByDevice(content)
    case 'account_deletion_requested':
      return templates.accountDeletionRequested(content)
    case 'email_change_old':
      return templates.emailChangeOld(content)
    case 'email_change_new':
      return templates.emailChangeNew(content, hasAccount)
    case 'email_changed':
      return templates.emailChanged(content)
    case 'webhook_disabled':
      return templates.webhookDisabled(content)
    case 'test':
      return templates.test()
  }
}
