import type { SessionAnswer, SessionObject } from '@keyway/sdk/protocol'
import { z } from 'zod'
import { type Instant, toRfc3339 } from '../../clock.ts'
import { page } from '../../paging.ts'
import type { Session } from '../../sessions/session.ts'
import { expiryIfUnused, type SessionLifetimes } from '../../sessions/session-lifetime.ts'
import type { SessionTokens } from '../../sessions/sessions.ts'
import type { User } from '../../users/user.ts'
import { NO_CONTENT, ok } from '../answer.ts'
import { text } from '../body-fields.ts'
import type { HttpPorts } from '../http-ports.ts'
import * as answers from '../openapi-schemas.ts'
import { pageQuery } from '../query.ts'
import { type Route, route } from '../route.ts'
import { userObject } from '../user-object.ts'

const refreshToken = text('a refresh token', 'svr_bm90LWEtcmVhbC10b2tlbg')
const refreshBody = z.object({ refresh_token: refreshToken })
/** The tag of refresh and logout, so that the documentation lists them with the other sign-in calls. */
const SIGN_IN_TAG = 'Sign-in'
const TAG = 'Sessions'

export function sessionRoutes(
  { sessions }: Pick<HttpPorts, 'sessions'>,
  lifetimes: SessionLifetimes,
): Route[] {
  return [
    route({
      method: 'POST',
      path: '/auth/refresh',
      operation: 'refreshSession',
      tag: SIGN_IN_TAG,
      summary: 'Get new tokens for a refresh token',
      description:
        'A refresh token works once; reuse ends the session. A request whose response was lost can be repeated if it has a random Idempotency-Key, with the same key.',
      access: 'public',
      body: refreshBody,
      example: { refresh_token: 'svr_bm90LWEtcmVhbC10b2tlbg' },
      idempotencyKey: 'optional',
      countsFailures: true,
      answers: [answers.okAnswer('New tokens.', answers.sessionWithTokens, answers.sessionWithTokensExample)],
      errors: ['invalid_refresh_token', 'refresh_token_reused', 'rate_limited'],
      async handle({ body, idempotencyKey, caller }) {
        const { user, session, tokens } = await sessions.refresh(body.refresh_token, idempotencyKey, caller)
        return ok(sessionAnswer(user, session, tokens))
      },
    }),
    route({
      method: 'POST',
      path: '/auth/logout',
      operation: 'logOut',
      tag: SIGN_IN_TAG,
      summary: 'End the session of a refresh token',
      description: 'Also accepts a rotated token; an unknown one gets the same response.',
      access: 'public',
      body: refreshBody,
      example: { refresh_token: 'svr_bm90LWEtcmVhbC10b2tlbg' },
      answers: [{ status: 204, description: 'The session has ended, or there was none.' }],
      errors: [],
      async handle({ body, caller }) {
        await sessions.endByToken(body.refresh_token, 'logout', caller)
        return NO_CONTENT
      },
    }),
    route({
      method: 'GET',
      path: '/v1/sessions',
      operation: 'listSessions',
      tag: TAG,
      summary: 'List your sessions',
      description: 'Live sessions, newest first; `expires_at` is when a session ends unless it is refreshed.',
      access: 'owner',
      query: pageQuery,
      answers: [answers.pageAnswer('One page of sessions.', answers.sessionItem, answers.sessionItemExample)],
      errors: [],
      async handle({ principal, query }) {
        const slice = await sessions.list(principal.userId, {
          limit: query.limit,
          after: query.cursor ?? null,
        })
        const currentId = principal.session?.id ?? null
        return ok(
          page(slice, session => sessionObject(session, expiryIfUnused(session, lifetimes), currentId)),
        )
      },
    }),
    route({
      method: 'DELETE',
      path: '/v1/sessions/{session_id}',
      operation: 'endSession',
      tag: TAG,
      summary: 'Sign out one session',
      description: 'Its access tokens are refused immediately.',
      access: 'owner',
      answers: [{ status: 204, description: 'The session has ended.' }],
      errors: [],
      async handle({ principal, params, caller }) {
        await sessions.end(principal.userId, params.session_id, caller)
        return NO_CONTENT
      },
    }),
    route({
      method: 'DELETE',
      path: '/v1/sessions',
      operation: 'endOtherSessions',
      tag: TAG,
      summary: 'Sign out everywhere else',
      description: 'Ends every session except that of the access token; with an API key, all sessions.',
      access: 'owner',
      answers: [{ status: 204, description: 'The others have ended.' }],
      errors: [],
      async handle({ principal, caller }) {
        await sessions.endOthers(principal.userId, principal.session?.id ?? null, caller)
        return NO_CONTENT
      },
    }),
  ]
}

/** The response body of a sign-in and of a refresh. */
export function sessionAnswer(user: User, session: Session, tokens: SessionTokens): SessionAnswer {
  return {
    user: userObject(user),
    access_token: tokens.accessToken,
    token_type: 'Bearer',
    expires_in: tokens.expiresIn,
    refresh_token: tokens.refreshToken,
    refresh_expires_in: tokens.refreshExpiresIn,
    session_id: session.id,
  }
}

/** @param expiresAt when the session ends unless it is refreshed */
function sessionObject(session: Session, expiresAt: Instant, currentId: string | null): SessionObject {
  return {
    id: session.id,
    created_at: toRfc3339(session.createdAt),
    last_used_at: toRfc3339(session.lastUsedAt),
    expires_at: toRfc3339(expiresAt),
    app_id: session.appId,
    client: session.client,
    network: session.network,
    current: session.id === currentId,
  }
}
