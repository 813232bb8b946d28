import { type Instant, MINUTE, SECOND, toRfc3339 } from '../../clock.ts'
import { MAGIC_LINK_LIFETIME } from '../../magic-links/magic-link.ts'
import type { MessageContent } from '../../outbox/message.ts'

/** The texts of all mails in one language. */
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
  webhookDisabled(content: Content<'webhook_disabled'>): TemplatedMail
  test(): TemplatedMail
}

/** The content of one mail without its layout, which is rendered as HTML and as plain text. */
export interface TemplatedMail {
  /** The template's name. */
  template: string
  subject: string
  /** The preview text that mail programs show next to the subject. */
  preheader: string
  heading: string
  body: Block[]
  /** Small print. */
  notes: string[]
  /** Before the support address. */
  support: string
  link: string | null
  code: string | null
}

export type Block =
  | { kind: 'paragraph'; text: string }
  | { kind: 'button'; label: string; url: string; urlLabel: string }
  | { kind: 'code'; label: string; code: string }
  | { kind: 'facts'; rows: [label: string, value: string][] }

type Content<Kind extends MessageContent['kind']> = Extract<MessageContent, { kind: Kind }>

const MINUTES = MAGIC_LINK_LIFETIME / MINUTE
const PASTE = 'If the button does not work, open this address in your browser:'

export function createEnglishTemplates(
  product: string,
  pages: { keys: string; sessions: string; webhooks: string },
): Templates {
  const plain = { support: 'Questions? Write to', link: null, code: null, notes: [] as string[] }
  const keysButton = { kind: 'button', label: 'Look at your keys', url: pages.keys, urlLabel: PASTE } as const

  const signup = ({ link, code, expiresAt }: Content<'sign_in'>): TemplatedMail => ({
    template: 'signup',
    subject: `Create your ${product} account (${timeOfRequest(expiresAt)})`,
    preheader: `One click makes your account. The link and the code expire in ${MINUTES} minutes.`,
    heading: `Create your ${product} account`,
    body: [
      {
        kind: 'paragraph',
        text: `There is no ${product} account for this address yet. Confirm that the address is yours, and your account is ready.`,
      },
      { kind: 'button', label: 'Create account', url: link, urlLabel: PASTE },
      { kind: 'code', label: 'Or enter this code where you asked for it:', code },
    ],
    notes: [
      `The link and the code expire in ${MINUTES} minutes and work once. Give them to nobody.`,
      'If you did not request this, you can ignore this email: without the link or the code no account is made.',
    ],
    support: plain.support,
    link,
    code,
  })

  const login = ({ link, code, expiresAt }: Content<'sign_in'>): TemplatedMail => ({
    template: 'login',
    subject: `Sign in to ${product} (${timeOfRequest(expiresAt)})`,
    preheader: `Your link to sign in. The link and the code expire in ${MINUTES} minutes.`,
    heading: `Sign in to ${product}`,
    body: [
      { kind: 'paragraph', text: 'Welcome back. Use the button to sign in; no password is needed.' },
      { kind: 'button', label: 'Sign in', url: link, urlLabel: PASTE },
      { kind: 'code', label: 'Or enter this code where you asked for it:', code },
    ],
    notes: [
      `The link and the code expire in ${MINUTES} minutes and work once. Give them to nobody.`,
      'If you did not request this, you can ignore this email: nobody can sign in without the link or the code.',
    ],
    support: plain.support,
    link,
    code,
  })

  return {
    signIn: (content, hasAccount) => (hasAccount ? login(content) : signup(content)),

    invitation: ({ link, expiresAt }) => ({
      ...plain,
      template: 'invitation',
      subject: `You are invited to ${product}`,
      preheader: 'Sign in with this address, and your account is ready.',
      heading: `You are invited to ${product}`,
      body: [
        {
          kind: 'paragraph',
          text: 'Who runs this service invited this address. Sign in with it: a link and a code come by mail, no password is needed, and your account is ready.',
        },
        { kind: 'button', label: 'Sign in', url: link, urlLabel: PASTE },
      ],
      notes: [
        `The invitation ends ${dateAndTime(expiresAt)}.`,
        'If you did not expect this, you can ignore this email: without a sign-in no account is made.',
      ],
    }),

    welcome: ({ trialCredit }) => ({
      ...plain,
      template: 'welcome',
      subject: `Welcome to ${product}`,
      preheader: 'Your account is ready. Next: your first API key.',
      heading: `Welcome to ${product}`,
      body: [
        { kind: 'paragraph', text: `Your account is ready, on the free plan.${credit(trialCredit)}` },
        {
          kind: 'paragraph',
          text: 'The next step is an API key: give it to your agent, and it connects by itself. You see every live connection, and ending a key ends its connections at once.',
        },
        { kind: 'button', label: 'Create your first key', url: pages.keys, urlLabel: PASTE },
      ],
    }),

    refreshTokenReused: ({ at, network, client }) => ({
      ...plain,
      template: 'refresh_token_reused',
      subject: `${product} security: a session was ended (${dateAndTime(at)})`,
      preheader: 'Someone presented a sign-in token that had been used before.',
      heading: 'We ended one of your sessions',
      body: [
        {
          kind: 'paragraph',
          text: 'A token of this session was used a second time. That happens when a copy of it is in other hands, so the session was ended. Your other sessions go on.',
        },
        {
          kind: 'facts',
          rows: [
            ['When', dateAndTime(at)],
            ['Network', network],
            ['Program', client ? withoutLinks(client) : 'unknown'],
          ],
        },
        { kind: 'button', label: 'Look at your sessions', url: pages.sessions, urlLabel: PASTE },
      ],
      notes: ['If you do not recognise this, end the sessions and keys that are not yours.'],
    }),

    apiKeyRevokedByHolder: ({ at, keyPrefix, keyName }) => ({
      ...plain,
      template: 'api_key_revoked_by_holder',
      subject: `${product} security: an API key was revoked (${dateAndTime(at)})`,
      preheader: 'Someone who holds the key reported it.',
      heading: 'One of your API keys was revoked',
      body: [
        {
          kind: 'paragraph',
          text: 'Someone who holds this key ended it, as is done with a key that was found where it should not be. It no longer works, and its connections are closed. If it was in use, create a new one.',
        },
        { kind: 'facts', rows: [...keyFacts(keyPrefix, keyName), ['Revoked', dateAndTime(at)]] },
        keysButton,
      ],
    }),

    apiKeyExpiring: ({ expiresAt, keyPrefix, keyName, days }) => ({
      ...plain,
      template: 'api_key_expiring',
      subject: `${product}: the API key ${keyPrefix} expires ${inDays(days)}`,
      preheader: 'Rotate it in time, and nothing stops.',
      heading: `An API key expires ${inDays(days)}`,
      body: [
        {
          kind: 'paragraph',
          text: 'After that it is refused and its connections are closed. Rotate it before: the new key has the same rights, and both work while you change over.',
        },
        { kind: 'facts', rows: [...keyFacts(keyPrefix, keyName), ['Expires', dateAndTime(expiresAt)]] },
        keysButton,
      ],
    }),

    apiKeyUsedAgain: ({ at, keyPrefix, keyName, network }) => ({
      ...plain,
      template: 'api_key_used_again',
      subject: `${product} security: a dormant API key is in use again (${dateAndTime(at)})`,
      preheader: 'It had not been used for a long time.',
      heading: 'A dormant API key is in use again',
      body: [
        {
          kind: 'paragraph',
          text: 'This key had not been used for a long time. If that was you, all is well. If not, revoke it: its connections end at once.',
        },
        {
          kind: 'facts',
          rows: [...keyFacts(keyPrefix, keyName), ['Used', dateAndTime(at)], ['Network', network]],
        },
        keysButton,
      ],
    }),

    apiKeyLimit: ({ at, limit, per, percent, keyPrefix, keyName }) => {
      const name = limitName(limit, per)
      const state = percent === 100 ? 'has reached' : 'has used 80 % of'
      const then = 'Charges and calls beyond it are refused.'
      return {
        ...plain,
        template: 'api_key_limit',
        subject: `${product}: the API key ${keyPrefix} ${state} its ${name}`,
        preheader: percent === 100 ? then : `Soon it is reached. ${then}`,
        heading: `An API key ${state} its ${name}`,
        body: [
          {
            kind: 'paragraph',
            text: `${then} If that is more than you expected, look at what the key is used for.`,
          },
          { kind: 'facts', rows: [...keyFacts(keyPrefix, keyName), ['Noticed', dateAndTime(at)]] },
          keysButton,
        ],
      }
    },

    apiKeyNewNetwork: ({ at, keyPrefix, keyName, network }) => ({
      ...plain,
      template: 'api_key_new_network',
      subject: `${product} security: an API key is used from a new network (${dateAndTime(at)})`,
      preheader: 'It had not been used from there before.',
      heading: 'An API key is used from a new network',
      body: [
        {
          kind: 'paragraph',
          text: 'If that was you, all is well. If not, revoke the key: its connections end at once. A key that is only ever used from the same networks may name them, and works from nowhere else then.',
        },
        {
          kind: 'facts',
          rows: [...keyFacts(keyPrefix, keyName), ['Used', dateAndTime(at)], ['Network', network]],
        },
        keysButton,
      ],
    }),

    apiKeyCreatedByDevice: ({ at, keyPrefix, keyName, deviceName, network }) => ({
      ...plain,
      template: 'api_key_created_by_device',
      subject: `${product} security: a device got an API key (${dateAndTime(at)})`,
      preheader: 'You approved it on the page for devices.',
      heading: 'A device got an API key',
      body: [
        {
          kind: 'paragraph',
          text: 'A device or terminal that was approved with your account created this key. If that was you, all is well. If not, revoke the key: its connections end at once. Then end the sessions that you do not recognise.',
        },
        {
          kind: 'facts',
          rows: [
            ...keyFacts(keyPrefix, keyName),
            ['Device', deviceName ? withoutLinks(deviceName) : 'without a name'],
            ['Created', dateAndTime(at)],
            ['Network', network],
          ],
        },
        keysButton,
      ],
    }),

    webhookDisabled: ({ at, host, failure }) => ({
      ...plain,
      template: 'webhook_disabled',
      subject: `${product}: a webhook was disabled (${dateAndTime(at)})`,
      preheader: 'Its endpoint accepted nothing for three days.',
      heading: 'A webhook was disabled',
      body: [
        {
          kind: 'paragraph',
          text: 'The endpoint accepted no event for three days, so nothing is sent to it any more. Events that wait are kept, and sent when you enable it again; what happens until then is not.',
        },
        {
          kind: 'facts',
          rows: [
            ['Endpoint', host],
            ['Last failure', withoutLinks(failure)],
            ['Disabled', dateAndTime(at)],
          ],
        },
        { kind: 'button', label: 'Look at your webhooks', url: pages.webhooks, urlLabel: PASTE },
      ],
    }),

    test: () => ({
      ...plain,
      template: 'test',
      subject: `${product}: test mail`,
      preheader: 'Mail from this service arrives.',
      heading: 'Mail works',
      body: [
        {
          kind: 'paragraph',
          text: 'Someone who runs this service asked for this test. There is nothing to do.',
        },
      ],
    }),
  }
}

function credit(amount: string): string {
  return Number(amount) > 0 ? ` We put $${amount} of trial credit on it.` : ''
}

function limitName(limit: Content<'api_key_limit'>['limit'], per: Content<'api_key_limit'>['per']): string {
  const noun = { spend: 'spend limit', requests: 'request limit', quota: 'quota' }[limit]
  return per === 'total' ? `total ${noun}` : `${noun} per ${per}`
}

function keyFacts(prefix: string, name: string | null): [string, string][] {
  const key: [string, string] = ['Key', `${prefix}…`]
  return name ? [['Name', name], key] : [key]
}

function inDays(days: number): string {
  if (days < 1) return 'today'
  return days === 1 ? 'in 1 day' : `in ${days} days`
}

/**
 * When the link was requested. It is part of the subject so that mail programs do not group two requests into one
 * conversation, and the newest link is easily found. A retrying client asks twice in a second: two letters stand for the
 * milliseconds.
 */
function timeOfRequest(expiresAt: Instant): string {
  const milliseconds = expiresAt % SECOND
  const reference = [milliseconds >> 5, milliseconds & 31].map(index => REFERENCE_LETTERS[index]).join('')
  return `${toRfc3339(expiresAt - MAGIC_LINK_LIFETIME).slice(11, 19)} UTC, ${reference}`
}

/** 32 that are not mistaken for each other. */
const REFERENCE_LETTERS = '23456789ABCDEFGHJKLMNPQRSTUVWXYZ'

function dateAndTime(instant: Instant): string {
  const text = toRfc3339(instant)
  return `${text.slice(0, 10)} ${text.slice(11, 16)} UTC`
}

const MAX_CLIENT_LENGTH = 80

/** Removes from a client-supplied text what mail programs would turn into a link. */
function withoutLinks(text: string): string {
  return text
    .replace(/[^\x20-\x7e]+/g, ' ')
    .replace(/:\/\/|@|www\./gi, ' ')
    .replace(/\.(?=[a-z])/gi, ' ')
    .slice(0, MAX_CLIENT_LENGTH)
}
