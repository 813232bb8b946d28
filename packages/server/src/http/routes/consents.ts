import type { ConsentObject } from '@keyway/sdk/protocol'
import { toRfc3339 } from '../../clock.ts'
import type { NamedConsent } from '../../consents/consent.ts'
import { page } from '../../paging.ts'
import { NO_CONTENT, ok } from '../answer.ts'
import type { HttpPorts } from '../http-ports.ts'
import * as answers from '../openapi-schemas.ts'
import { pageQuery } from '../query.ts'
import { type Route, route } from '../route.ts'

const TAG = 'Account'

export function consentRoutes({ consents }: Pick<HttpPorts, 'consents'>): Route[] {
  return [
    route({
      method: 'GET',
      path: '/v1/consents',
      operation: 'listConsents',
      tag: TAG,
      summary: 'List the apps that you gave access to your account',
      description:
        'Newest first. Apps that the operator trusts need no consent; their sessions are in `/v1/sessions`.',
      access: 'account:read',
      query: pageQuery,
      answers: [answers.pageAnswer('One page of consents.', answers.consent, answers.consentExample)],
      errors: [],
      async handle({ principal, query }) {
        const { limit, cursor } = query
        return ok(
          page(await consents.list(principal.userId, { limit, after: cursor ?? null }), consentObject),
        )
      },
    }),
    route({
      method: 'DELETE',
      path: '/v1/consents/{app_id}',
      operation: 'withdrawConsent',
      tag: TAG,
      summary: 'Withdraw the access of an app',
      description:
        'Ends what was issued to the app for you, immediately and on every node. It must ask again before it gets anything else.',
      access: 'account:write',
      answers: [{ status: 204, description: 'The app has no access any more.' }],
      errors: [],
      async handle({ principal, params, caller }) {
        await consents.withdraw(principal.userId, params.app_id, caller)
        return NO_CONTENT
      },
    }),
  ]
}

export function consentObject({ appId, name, scopes, grantedAt }: NamedConsent): ConsentObject {
  return { app_id: appId, name, scopes, granted_at: toRfc3339(grantedAt) }
}
