import { z } from 'zod'
import { DEFAULT_APP_ID } from '../../apps/app.ts'
import { invalidRequest } from '../../errors.ts'
import { localeOf } from '../../languages/negotiation.ts'
import { isLoginCode, LOGIN_CODE_DIGITS } from '../../magic-links/login-code.ts'
import { MAGIC_LINK_LIFETIME_SECONDS, type MagicLinkProof } from '../../magic-links/magic-link.ts'
import { ok } from '../answer.ts'
import { appId, email, locale, optional, text } from '../body-fields.ts'
import { EXAMPLE_IDS } from '../example-ids.ts'
import type { FailureLimits } from '../failure-limits.ts'
import type { HttpPorts } from '../http-ports.ts'
import * as answers from '../openapi-schemas.ts'
import { type Route, route } from '../route.ts'
import { sessionAnswer } from './sessions.ts'

const LINK_TOKEN = /^[A-Za-z0-9_-]{43}$/
const EXAMPLE_TOKEN = 'Jx3v0b9c1Qm7Rk2sT8uW4yZ6aB5dE0fG1hI2jK3lM4n'

const sendBody = z.object({
  email,
  app_id: optional(appId),
  locale: optional(locale).meta({
    description:
      'The language of the mail (BCP 47), for a person who has chosen none; by default what Accept-Language asks for. One that there is not gives English.',
  }),
})

const token = text("the link's token, 43 characters", EXAMPLE_TOKEN).refine(value => LINK_TOKEN.test(value), {
  error: `must be the link's token, 43 characters, for example "${EXAMPLE_TOKEN}"`,
})
const code = text(`the mail's code, ${LOGIN_CODE_DIGITS} digits`, '12345678').refine(isLoginCode, {
  error: `must be the mail's code, ${LOGIN_CODE_DIGITS} digits, for example "12345678"`,
})
const loginId = text('the login_id of the response to send-magic-link', EXAMPLE_IDS.login)

const verifyBody = z
  .object({
    email,
    token: optional(token),
    app_id: optional(appId),
    login_id: optional(loginId),
    code: optional(code),
  })
  .meta({
    description:
      'Either `token` and `email`, or `login_id`, `code` and `email`. An `app_id` must be that of the link.',
  })

const TAG = 'Sign-in'

export function magicLinkRoutes(
  { magicLinks }: Pick<HttpPorts, 'magicLinks'>,
  { assertMayGuess }: Pick<FailureLimits, 'assertMayGuess'>,
): Route[] {
  return [
    route({
      method: 'POST',
      path: '/auth/send-magic-link',
      operation: 'sendMagicLink',
      tag: TAG,
      summary: 'Mail a sign-in link',
      description:
        'The response and its time do not depend on whether the address has an account. The mail contains a link and a code, both valid for five minutes.',
      access: 'public',
      body: sendBody,
      example: { email: 'ada@example.com' },
      answers: [answers.okAnswer('The mail is queued.', answers.sentLink, answers.sentLinkExample)],
      errors: ['rate_limited'],
      async handle({ body, caller, incoming }) {
        const requestedLocale = body.locale ?? localeOf(incoming.headers['accept-language'])
        const request = { email: body.email, appId: body.app_id ?? DEFAULT_APP_ID, locale: requestedLocale }
        const { loginId } = await magicLinks.send(request, caller)
        return ok({ status: 'sent', expires_in: MAGIC_LINK_LIFETIME_SECONDS, login_id: loginId })
      },
    }),
    route({
      method: 'POST',
      path: '/auth/verify-magic-link',
      operation: 'verifyMagicLink',
      tag: TAG,
      summary: 'Sign in with a link or its code',
      description:
        'Only this POST uses up a link. A new address gets an account. After too many wrong codes, codes are refused unchecked (429), while the link stays valid.',
      access: 'public',
      body: verifyBody,
      example: { token: EXAMPLE_TOKEN, email: 'ada@example.com' },
      countsFailures: true,
      answers: [answers.okAnswer('Signed in.', answers.signIn, answers.signInExample)],
      errors: [
        'magic_link_invalid',
        'magic_link_expired',
        'magic_link_used',
        'account_suspended',
        'rate_limited',
      ],
      async handle({ body, caller }) {
        const proof = toProof(body)
        if ('code' in proof) assertMayGuess(caller)
        const { user, session, tokens, isNewUser } = await magicLinks.verify(proof, 'api', caller)
        return ok({ ...sessionAnswer(user, session, tokens), is_new_user: isNewUser })
      },
    }),
  ]
}

function toProof(body: z.output<typeof verifyBody>): MagicLinkProof {
  const { email, token, app_id: appId, login_id: loginId, code } = body
  if (token !== undefined) return { token, email, appId }
  if (loginId !== undefined && code !== undefined) return { loginId, code, email, appId }
  const field = code !== undefined ? 'login_id' : loginId !== undefined ? 'code' : 'token'
  throw invalidRequest([{ field, message: 'is required: send token and email, or login_id, code and email' }])
}
