import { SECOND } from '../clock.ts'
import { type Mail, type Mailer, MailRejected } from '../outbox/outbox.ts'
import { AUTOMATIC_HEADERS } from './auto-submitted.ts'
import { domainOf, formatSender, type Sender } from './sender.ts'

const RESEND_URL = 'https://api.resend.com'
const POSTMARK_URL = 'https://api.postmarkapp.com'
const CHECK_TIMEOUT = 10 * SECOND
const MAX_RESPONSE_CHARACTERS = 2000

export interface HttpApiDeps {
  from: Sender
  /** Another base URL of the provider, for a region, a proxy or a test. */
  baseUrl?: string
}

/** Sends mail through api.resend.com. The message's id is the idempotency key, so a retry sends no second mail. */
export function createResendMailer(key: string, { from, baseUrl = RESEND_URL }: HttpApiDeps): Mailer {
  const headers = { authorization: `Bearer ${key}` }
  return {
    async deliver(mail, signal) {
      await post(
        `${baseUrl}/emails`,
        { ...headers, 'idempotency-key': mail.messageId },
        {
          from: formatSender(from),
          to: [mail.to],
          subject: mail.subject,
          text: mail.text,
          html: mail.html,
          headers: AUTOMATIC_HEADERS,
        },
        signal,
      )
    },
    async check() {
      // A valid key that may only send gets `restricted_api_key` here.
      const answer = await get(`${baseUrl}/domains`, headers)
      if (answer.status !== 200 && !answer.text.includes('restricted_api_key')) throw answerError(answer)
    },
    close() {},
  }
}

/** Sends mail through api.postmarkapp.com, without tracking, and with the Message-ID of the outbox. */
export function createPostmarkMailer(token: string, { from, baseUrl = POSTMARK_URL }: HttpApiDeps): Mailer {
  const headers = { 'x-postmark-server-token': token, accept: 'application/json' }
  return {
    async deliver(mail, signal) {
      await post(`${baseUrl}/email`, headers, toPostmarkMessage(mail, from), signal)
    },
    async check() {
      const answer = await get(`${baseUrl}/server`, headers)
      if (answer.status !== 200) throw answerError(answer)
    },
    close() {},
  }
}

function toPostmarkMessage(mail: Mail, from: Sender) {
  const headers = {
    ...AUTOMATIC_HEADERS,
    'Message-ID': `<${mail.messageId}@${domainOf(from)}>`,
    'X-PM-KeepID': 'true',
  }
  return {
    From: formatSender(from),
    To: mail.to,
    Subject: mail.subject,
    TextBody: mail.text,
    HtmlBody: mail.html,
    MessageStream: 'outbound',
    TrackOpens: false,
    TrackLinks: 'None',
    Headers: Object.entries(headers).map(([Name, Value]) => ({ Name, Value })),
  }
}

interface Answer {
  status: number
  text: string
}

async function post(
  url: string,
  headers: Record<string, string>,
  body: object,
  signal: AbortSignal,
): Promise<void> {
  const answer = await call(url, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal,
  })
  if (answer.status < 200 || answer.status > 299) throw answerError(answer)
}

function get(url: string, headers: Record<string, string>): Promise<Answer> {
  return call(url, { headers, signal: AbortSignal.timeout(CHECK_TIMEOUT) })
}

/** Redirects are not followed: they would send the provider's credential elsewhere. */
async function call(url: string, init: RequestInit): Promise<Answer> {
  const response = await fetch(url, { ...init, redirect: 'error' })
  return { status: response.status, text: await readStart(response) }
}

/** The first characters of the response; the rest is not read, which bounds memory. */
async function readStart(response: Response): Promise<string> {
  let text = ''
  if (!response.body) return text
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    text += chunk
    if (text.length >= MAX_RESPONSE_CHARACTERS) break
  }
  return text.slice(0, MAX_RESPONSE_CHARACTERS)
}

/**
 * 4xx after which a mail is retried: the operator can correct the credential (401, 403), the request came too late or
 * too early (408, 425), another with its idempotency key is in progress (409), or there were too many (429).
 */
const RETRYABLE_REFUSALS = [401, 403, 408, 409, 425, 429]

function answerError({ status, text }: Answer): Error {
  const reason = `the mail provider answered ${status}: ${text}`
  const isPermanent = status >= 400 && status < 500 && !RETRYABLE_REFUSALS.includes(status)
  return isPermanent ? new MailRejected(reason) : new Error(reason)
}
