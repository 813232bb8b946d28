import { EMAIL_CHANGE_LIFETIME } from '../../account-changes/email-change.ts'
import { formatMoney } from '../../billing/money.ts'
import { type Instant, MINUTE, SECOND, toRfc3339 } from '../../clock.ts'
import { browserOf } from '../../languages/client-name.ts'
import type { Localization } from '../../languages/localization.ts'
import type { TextTemplate } from '../../languages/text.ts'
import { MAGIC_LINK_LIFETIME } from '../../magic-links/magic-link.ts'
import type { MessageContent } from '../../outbox/message.ts'

export interface Templates {
  /** `hasAccount` is read when the mail is sent, so that a request does not reveal whether an account exists. */
  signIn(content: Content<'sign_in'>, hasAccount: boolean): TemplatedMail
  invitation(content: Content<'invitation'>): TemplatedMail
  welcome(content: Content<'welcome'>): TemplatedMail
  refreshTokenReused(content: Content<'refresh_token_reused'>): TemplatedMail
  apiKeyRevokedByHolder(content: Content<'api_key_revoked_by_holder'>): TemplatedMail
  apiKeyExpiring(content: Content<'api_key_expiring'>): TemplatedMail
  apiKeyUsedAgain(content: Content<'api_key_used_again'>): TemplatedMail
  apiKeyLimit(content: Content<'api_key_limit'>): TemplatedMail
  apiKeyNewNetwork(content: Content<'api_key_new_network'>): TemplatedMail
  apiKeyCreatedByDevice(content: Content<'api_key_created_by_device'>): TemplatedMail
  accountDeletionRequested(content: Content<'account_deletion_requested'>): TemplatedMail
  emailChangeOld(content: Content<'email_change_old'>): TemplatedMail
  /** `hasAccount` is read when the mail is sent: an address with an account gets no link. */
  emailChangeNew(content: Content<'email_change_new'>, hasAccount: boolean): TemplatedMail
  emailChanged(content: Content<'email_changed'>): TemplatedMail
  webhookDisabled(content: Content<'webhook_disabled'>): TemplatedMail
  test(): TemplatedMail
}

/** The content of one mail without its layout, from which HTML and plain text are rendered. */
export interface TemplatedMail {
  template: string
  subject: string
  /** The preview text that mail programs show next to the subject. */
  preheader: string
  heading: string
  body: Block[]
  /** Paragraphs in small print, after the body. */
  notes: string[]
  /** The sentence with the support address. */
  support: TextTemplate<'support'>
  link: string | null
  code: string | null
}

export type Block =
  | { kind: 'paragraph'; text: string }
  /** `urlLabel` is null if the URL need not be shown as text. */
  | { kind: 'button'; label: string; url: string; urlLabel: string | null }
  | { kind: 'code'; label: string; code: string }
  | { kind: 'facts'; rows: [label: string, value: string][] }

type Content<Kind extends MessageContent['kind']> = Extract<MessageContent, { kind: Kind }>

const LINK_LIFETIME_MINUTES = MAGIC_LINK_LIFETIME / MINUTE

export function createTemplates(
  { texts: { mails, accountMails, units }, dateAndTime, dollars, number }: Localization,
  { name: product, supportEmail }: { name: string; supportEmail: string },
  pages: { keys: string; sessions: string; account: string; webhooks: string },
): Templates {
  const { facts } = mails
  const defaults = { support: mails.support, link: null, code: null, notes: [] as string[] }
  const paragraph = (text: string): Block => ({ kind: 'paragraph', text })
  const button = (label: string, url: string): Block => ({
    kind: 'button',
    label,
    url,
    urlLabel: mails.paste,
  })
  const keyButton = (keyId: string | undefined) =>
    keyId ? button(mails.keyButton, `${pages.keys}/${keyId}`) : button(mails.keysButton, pages.keys)

  /**
   * When and in which browser a mail was requested. The name of any other program is left out: whoever sends the
   * request chooses it, and the mail may go to somebody else.
   */
  const originFacts = (at: Instant, client: string | null | undefined): [string, string][] => {
    const browser = client ? browserOf(client, units) : null
    return [
      [facts.requested, dateAndTime(at)],
      ...(browser ? [[facts.program, browser] as [string, string]] : []),
    ]
  }

  const signIn = (
    template: 'signup' | 'login',
    { link, code, expiresAt, client }: Content<'sign_in'>,
  ): TemplatedMail => {
    const { subject, preheader, heading, lead, button: label, ignore } = mails[template]
    return {
      template,
      subject: subject({ product, time: timeOfRequest(expiresAt) }),
      preheader: preheader({ minutes: LINK_LIFETIME_MINUTES }),
      heading: heading({ product }),
      body: [
        paragraph(typeof lead === 'string' ? lead : lead({ product })),
        button(label, link),
        { kind: 'code', label: mails.code, code },
        { kind: 'facts', rows: originFacts(expiresAt - MAGIC_LINK_LIFETIME, client) },
      ],
      notes: [mails.expires({ minutes: LINK_LIFETIME_MINUTES }), ignore],
      support: defaults.support,
      link,
      code,
    }
  }

  const keyFacts = (prefix: string, name: string | null, ...more: [string, string][]): Block => ({
    kind: 'facts',
    rows: [...(name ? [[facts.name, name] as [string, string]] : []), [facts.key, `${prefix}…`], ...more],
  })

  return {
    signIn: (content, hasAccount) => signIn(hasAccount ? 'login' : 'signup', content),

    invitation({ link, expiresAt }) {
      const { subject, preheader, heading, lead, button: label, ends, ignore } = mails.invitation
      return {
        ...defaults,
        template: 'invitation',
        subject: subject({ product }),
        preheader,
        heading: heading({ product }),
        body: [paragraph(lead), button(label, link)],
        notes: [ends({ date: dateAndTime(expiresAt) }), ignore],
      }
    },

    welcome({ trialCredit }) {
      const { subject, preheader, heading, lead, leadWithCredit, next, button: label } = mails.welcome
      const leadText = Number(trialCredit) > 0 ? leadWithCredit({ credit: dollars(trialCredit) }) : lead
      return {
        ...defaults,
        template: 'welcome',
        subject: subject({ product }),
        preheader,
        heading: heading({ product }),
        body: [paragraph(leadText), paragraph(next), button(label, pages.keys)],
      }
    },

    refreshTokenReused({ at, network, client }) {
      const { subject, preheader, heading, lead, button: label, unknown } = mails.refreshTokenReused
      return {
        ...defaults,
        template: 'refresh_token_reused',
        subject: subject({ product, at: dateAndTime(at) }),
        preheader,
        heading,
        body: [
          paragraph(lead),
          {
            kind: 'facts',
            rows: [
              [facts.when, dateAndTime(at)],
              [facts.network, network],
              [
                facts.program,
                client ? (browserOf(client, units) ?? withoutLinks(client)) : facts.unknownProgram,
              ],
            ],
          },
          button(label, pages.sessions),
        ],
        notes: [unknown],
      }
    },

    apiKeyRevokedByHolder({ at, keyId, keyPrefix, keyName }) {
      const { subject, preheader, heading, lead } = mails.keyRevokedByHolder
      return {
        ...defaults,
        template: 'api_key_revoked_by_holder',
        subject: subject({ product, at: dateAndTime(at) }),
        preheader,
        heading,
        body: [
          paragraph(lead),
          keyFacts(keyPrefix, keyName, [facts.revoked, dateAndTime(at)]),
          keyButton(keyId),
        ],
      }
    },

    apiKeyExpiring({ expiresAt, keyId, keyPrefix, keyName, days: count }) {
      const { subject, subjectToday, preheader, heading, headingToday, lead } = mails.keyExpiring
      const isToday = count < 1
      return {
        ...defaults,
        template: 'api_key_expiring',
        subject: isToday
          ? subjectToday({ product, key: keyPrefix })
          : subject({ product, key: keyPrefix, count }),
        preheader,
        heading: isToday ? headingToday : heading({ count }),
        body: [
          paragraph(lead),
          keyFacts(keyPrefix, keyName, [facts.expires, dateAndTime(expiresAt)]),
          keyButton(keyId),
        ],
      }
    },

    apiKeyUsedAgain({ at, keyId, keyPrefix, keyName, network }) {
      const { subject, preheader, heading, lead } = mails.keyUsedAgain
      return {
        ...defaults,
        template: 'api_key_used_again',
        subject: subject({ product, at: dateAndTime(at) }),
        preheader,
        heading,
        body: [
          paragraph(lead),
          keyFacts(keyPrefix, keyName, [facts.used, dateAndTime(at)], [facts.network, network]),
          keyButton(keyId),
        ],
      }
    },

    apiKeyLimit({ at, limit: kind, per, percent, allowed, used, keyId, keyPrefix, keyName }) {
      const { near, reached, lead } = mails.keyLimit
      const { subject, preheader, heading } = percent === 100 ? reached : near
      const limitNames: Readonly<Record<string, string>> = mails.keyLimit[kind]
      const limit = limitNames[per]!
      const formatAmount = (count: number) => (kind === 'spend' ? dollars(formatMoney(count)) : number(count))
      const amounts: [string, string][] = []
      if (allowed !== undefined) amounts.push([facts.limit, formatAmount(allowed)])
      if (used !== undefined) amounts.push([facts.usedSoFar, formatAmount(used)])
      return {
        ...defaults,
        template: 'api_key_limit',
        subject: subject({ product, key: keyPrefix, limit }),
        preheader,
        heading: heading({ limit }),
        body: [
          paragraph(lead),
          keyFacts(keyPrefix, keyName, ...amounts, [facts.noticed, dateAndTime(at)]),
          keyButton(keyId),
        ],
      }
    },

    apiKeyNewNetwork({ at, keyId, keyPrefix, keyName, network }) {
      const { subject, preheader, heading, lead } = mails.keyNewNetwork
      return {
        ...defaults,
        template: 'api_key_new_network',
        subject: subject({ product, at: dateAndTime(at) }),
        preheader,
        heading,
        body: [
          paragraph(lead),
          keyFacts(keyPrefix, keyName, [facts.used, dateAndTime(at)], [facts.network, network]),
          keyButton(keyId),
        ],
      }
    },

    apiKeyCreatedByDevice({ at, keyId, keyPrefix, keyName, deviceName, network }) {
      const { subject, preheader, heading, lead } = mails.keyCreatedByDevice
      return {
        ...defaults,
        template: 'api_key_created_by_device',
        subject: subject({ product, at: dateAndTime(at) }),
        preheader,
        heading,
        body: [
          paragraph(lead),
          keyFacts(
            keyPrefix,
            keyName,
            [facts.device, deviceName ? withoutLinks(deviceName) : facts.unnamedDevice],
            [facts.created, dateAndTime(at)],
            [facts.network, network],
          ),
          keyButton(keyId),
        ],
      }
    },

    accountDeletionRequested({ at, deletesAt, network }) {
      const { subject, preheader, heading, lead, deleted, asked, unknown } = accountMails.deletionRequested
      const rows: [string, string][] = [
        [deleted, dateAndTime(deletesAt)],
        [asked, dateAndTime(at)],
        [accountMails.network, network],
      ]
      return {
        ...defaults,
        template: 'account_deletion_requested',
        subject: subject({ product, at: dateAndTime(deletesAt) }),
        preheader,
        heading,
        body: [
          paragraph(lead({ at: dateAndTime(deletesAt) })),
          { kind: 'facts', rows },
          button(accountMails.look, pages.account),
        ],
        notes: [unknown],
      }
    },

    emailChangeOld({ link, newEmail, expiresAt, network }) {
      const { subject, preheader, heading, lead, button: label, unknown } = accountMails.oldAddress
      const rows: [string, string][] = [
        [accountMails.newAddress, newEmail],
        [accountMails.network, network],
      ]
      return {
        ...defaults,
        template: 'email_change_old',
        subject: subject({ product, at: dateAndTime(expiresAt - EMAIL_CHANGE_LIFETIME) }),
        preheader,
        heading,
        body: [paragraph(lead), { kind: 'facts', rows }, button(label, link)],
        notes: [accountMails.expires({ at: dateAndTime(expiresAt) }), unknown],
        link,
      }
    },

    emailChangeNew({ link, expiresAt }, hasAccount) {
      const at = dateAndTime(expiresAt - EMAIL_CHANGE_LIFETIME)
      const { subject, preheader, heading, lead, ignore } =
        accountMails[hasAccount ? 'addressTaken' : 'newAddressMail']
      const head = { subject: subject({ product, at }), preheader, heading }
      const body = [paragraph(lead({ product }))]
      if (hasAccount) return { ...defaults, template: 'email_change_taken', ...head, body, notes: [ignore] }
      return {
        ...defaults,
        template: 'email_change_new',
        ...head,
        body: [...body, button(accountMails.newAddressMail.button, link)],
        notes: [accountMails.expires({ at: dateAndTime(expiresAt) }), ignore],
        link,
      }
    },

    emailChanged({ at, newEmail, network }) {
      const {
        subject,
        preheader,
        heading,
        lead,
        changed,
        unknown,
        button: label,
      } = accountMails.addressChanged
      const rows: [string, string][] = [
        [accountMails.newAddress, newEmail],
        [changed, dateAndTime(at)],
        [accountMails.network, network],
      ]
      const mailtoUrl = `mailto:${encodeURI(supportEmail)}?subject=${encodeURIComponent(heading)}`
      const contact: Block = { kind: 'button', label, url: mailtoUrl, urlLabel: null }
      return {
        ...defaults,
        template: 'email_changed',
        subject: subject({ product, at: dateAndTime(at) }),
        preheader,
        heading,
        body: [paragraph(lead), { kind: 'facts', rows }, paragraph(unknown), contact],
      }
    },

    webhookDisabled({ at, webhookId, host, failure }) {
      const { subject, preheader, heading, lead, button: label } = mails.webhookDisabled
      return {
        ...defaults,
        template: 'webhook_disabled',
        subject: subject({ product, at: dateAndTime(at) }),
        preheader,
        heading,
        body: [
          paragraph(lead),
          {
            kind: 'facts',
            rows: [
              [facts.endpoint, host],
              [facts.failure, withoutLinks(failure)],
              [facts.disabled, dateAndTime(at)],
            ],
          },
          button(label, `${pages.webhooks}/${webhookId}`),
        ],
      }
    },

    test() {
      const { subject, preheader, heading, lead } = mails.test
      return {
        ...defaults,
        template: 'test',
        subject: subject({ product }),
        preheader,
        heading,
        body: [paragraph(lead)],
      }
    },
  }
}

/**
 * When the link was requested. It is part of the subject so that mail programs do not group two requests into one
 * conversation, and the newest link is easily found. Two requests of a retrying client may fall into one second, so two
 * characters encode the milliseconds.
 */
function timeOfRequest(expiresAt: Instant): string {
  const milliseconds = expiresAt % SECOND
  const reference = [milliseconds >> 5, milliseconds & 31].map(index => REFERENCE_LETTERS[index]).join('')
  return `${toRfc3339(expiresAt - MAGIC_LINK_LIFETIME).slice(11, 19)} UTC, ${reference}`
}

/** 32 letters and digits that cannot be mistaken for each other. */
const REFERENCE_LETTERS = '23456789ABCDEFGHJKLMNPQRSTUVWXYZ'

const MAX_CLIENT_LENGTH = 80

/**
 * Removes from a client-supplied text what mail programs would turn into a link, and characters other than ASCII; cuts
 * it to 80 characters.
 */
function withoutLinks(text: string): string {
  return text
    .replace(/[^\x20-\x7e]+/g, ' ')
    .replace(/:\/\/|@|www\./gi, ' ')
    .replace(/\.(?=[a-z])/gi, ' ')
    .slice(0, MAX_CLIENT_LENGTH)
}
