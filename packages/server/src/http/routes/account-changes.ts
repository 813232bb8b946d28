import { z } from 'zod'
import { EMAIL_CHANGE_LIFETIME } from '../../account-changes/email-change.ts'
import { type Clock, SECOND } from '../../clock.ts'
import { assertFresh } from '../../sessions/reauthentication.ts'
import { readAccount } from '../account-object.ts'
import { NO_CONTENT, ok } from '../answer.ts'
import { email, text } from '../body-fields.ts'
import type { HttpPorts } from '../http-ports.ts'
import { notFound } from '../not-found.ts'
import * as answers from '../openapi-schemas.ts'
import { type Route, route } from '../route.ts'

const TAG = 'Account'
const accountAnswer = { schema: answers.account, example: answers.accountExample }
const EXPIRES_IN_SECONDS = EMAIL_CHANGE_LIFETIME / SECOND

type Deps = Pick<HttpPorts, 'accounts' | 'deletions' | 'emailChanges' | 'users'>

/** A change of the e-mail address, and the deletion of the account. */
export function accountChangeRoutes(services: Deps, clock: Clock): Route[] {
  const { deletions, emailChanges, users } = services
  return [
    route({
      method: 'POST',
      path: '/v1/me/email',
      operation: 'changeEmail',
      tag: TAG,
      summary: 'Ask for another address',
      description:
        'Mails a link to the new address and one to the present one; the address changes once both have confirmed, and all other sessions end. Keys stay. The answer is the same whether or not the new address has an account: then its owner is told by mail, and no link is sent. A new request ends an earlier one. Needs a sign-in of the last 30 minutes. At most five a day, and each mail counts as a sign-in mail to the new address.',
      access: 'session',
      body: z.object({ email }),
      example: { email: 'ada@example.org' },
      answers: [
        {
          status: 200,
          description: 'Both mails are queued.',
          schema: z
            .strictObject({ status: z.literal('sent'), expires_in: z.int().min(1) })
            .meta({ id: 'EmailChangeRequested' }),
          example: { status: 'sent', expires_in: EXPIRES_IN_SECONDS },
        },
      ],
      errors: ['reauthentication_required', 'rate_limited'],
      async handle({ principal, body, caller }) {
        assertFresh(principal.session, clock.now())
        const user = await users.get(principal.userId)
        if (!user) throw notFound()
        await emailChanges.request({ user, session: principal.session }, body.email, caller)
        return ok({ status: 'sent', expires_in: EXPIRES_IN_SECONDS })
      },
    }),
    route({
      method: 'POST',
      path: '/v1/me/email/confirm',
      operation: 'confirmEmail',
      tag: TAG,
      summary: 'Confirm a change of the address',
      description:
        'By the token of either mailed link, in any session of the account. With the second one the address changes. Confirming one twice is no error while the other is missing.',
      access: 'session',
      body: z.object({ token: text('the token of a mailed link', 'mQ3…', { max: 200 }) }),
      example: { token: 'mQ3vP0c2tL0f8sQfZb1n5cM2m0yq6jvXl2w9fYw1d3E' },
      answers: [
        {
          status: 200,
          description: 'The account, changed or waiting for the other address.',
          ...accountAnswer,
        },
      ],
      errors: [],
      async handle({ principal, body, caller }) {
        await emailChanges.confirm(principal.userId, body.token, caller)
        return ok(await readAccount(services, principal.userId))
      },
    }),
    route({
      method: 'DELETE',
      path: '/v1/me/email',
      operation: 'cancelEmailChange',
      tag: TAG,
      summary: 'Cancel a change of the address',
      description: 'Its links stop working. Repeating it changes nothing.',
      access: 'session',
      answers: [{ status: 204, description: 'No change awaits confirmation.' }],
      errors: [],
      async handle({ principal }) {
        await emailChanges.cancel(principal.userId)
        return NO_CONTENT
      },
    }),
    route({
      method: 'DELETE',
      path: '/v1/me',
      operation: 'deleteAccount',
      tag: TAG,
      summary: 'Delete your account after a wait',
      description:
        'Takes effect after 7 days, and a mail says when. Until then the account works as before, and `POST /v1/me/restore` keeps the account. Then sessions and keys end, name and address are erased, and the ledger stays; signing up again gives no second credit. Repeating it does not move the time. Needs a sign-in of the last 30 minutes.',
      access: 'session',
      answers: [{ status: 200, description: 'The account, with `deletes_at`.', ...accountAnswer }],
      errors: ['reauthentication_required', 'last_administrator', 'rate_limited'],
      async handle({ principal, caller }) {
        assertFresh(principal.session, clock.now())
        await deletions.request(principal.userId, caller)
        return ok(await readAccount(services, principal.userId))
      },
    }),
    route({
      method: 'POST',
      path: '/v1/me/restore',
      operation: 'keepAccount',
      tag: TAG,
      summary: 'Keep your account after all',
      description:
        'Cancels the deletion that was asked for. Repeating it changes nothing. Needs a sign-in of the last 30 minutes.',
      access: 'session',
      answers: [{ status: 200, description: 'The account, with `deletes_at` null.', ...accountAnswer }],
      errors: ['reauthentication_required'],
      async handle({ principal, caller }) {
        assertFresh(principal.session, clock.now())
        await deletions.cancel(principal.userId, caller)
        return ok(await readAccount(services, principal.userId))
      },
    }),
  ]
}
