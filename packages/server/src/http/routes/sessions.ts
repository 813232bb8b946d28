import { idleEnd, type SessionLifetimes } from '../../sessions/session.ts'
import { NO_CONTENT, ok } from '../answer.ts'
import { page, sessionObject } from '../objects.ts'
import * as answers from '../openapi-schemas.ts'
import { type Route, route } from '../route.ts'
import type { HttpServices } from '../services.ts'
import { pageQuery } from '../validation.ts'

const TAG = 'Sessions'

export function sessionRoutes(
  { sessions }: Pick<HttpServices, 'sessions'>,
  lifetimes: SessionLifetimes,
): Route[] {
  return [
    route({
      method: 'GET',
      path: '/v1/sessions',
      operation: 'listSessions',
      tag: TAG,
      summary: 'List where you are signed in',
      description:
        'Sessions that stand now, newest first; `expires_at` is when one ends unless it is refreshed.',
      access: 'owner',
      query: pageQuery,
      answers: [
        {
          status: 200,
          description: 'One page of sessions.',
          schema: answers.listOf(answers.sessionItem),
          example: answers.listExample(answers.sessionItemExample),
        },
      ],
      errors: [],
      async handle({ principal, query }) {
        const slice = await sessions.list(principal.userId, {
          limit: query.limit,
          after: query.cursor ?? null,
        })
        const currentId = principal.session?.id ?? null
        return ok(page(slice, session => sessionObject(session, idleEnd(session, lifetimes), currentId)))
      },
    }),
    route({
      method: 'DELETE',
      path: '/v1/sessions/{session_id}',
      operation: 'endSession',
      tag: TAG,
      summary: 'Sign out one session',
      description: 'Its access tokens are refused at once.',
      access: 'session',
      answers: [{ status: 204, description: 'It has ended.' }],
      errors: [],
      async handle({ principal, params, caller }) {
        await sessions.end(principal.userId, params.session_id!, caller)
        return NO_CONTENT
      },
    }),
    route({
      method: 'DELETE',
      path: '/v1/sessions',
      operation: 'endOtherSessions',
      tag: TAG,
      summary: 'Sign out everywhere else',
      description: 'Ends every session but the one that asks.',
      access: 'session',
      answers: [{ status: 204, description: 'The others have ended.' }],
      errors: [],
      async handle({ principal, caller }) {
        await sessions.endOthers(principal.userId, principal.session.id, caller)
        return NO_CONTENT
      },
    }),
  ]
}
