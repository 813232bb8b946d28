import { z } from 'zod'
import { type Clock, type Instant, toRfc3339, toRfc3339OrNull } from '../../../clock.ts'
import { INVITATION_STATES, type Invitation, stateOf } from '../../../invitations/invitation.ts'
import { page } from '../../../paging.ts'
import { created, ok } from '../../answer.ts'
import { email, locale, optional } from '../../body-fields.ts'
import { EXAMPLE_IDS } from '../../example-ids.ts'
import type { HttpPorts } from '../../http-ports.ts'
import * as answers from '../../openapi-schemas.ts'
import { pageQuery } from '../../query.ts'
import { type Route, route } from '../../route.ts'
import { assertMayGiveRights, reason, TAG, toActedBy } from './acting.ts'

const newInvitation = z.strictObject({
  email,
  role: optional(z.enum(['support', 'admin'], { error: 'must be support or admin, or omitted' })),
  locale: optional(locale).meta({
    description:
      'The language of the mail (BCP 47); by default that of the account that invites. One that there is not gives English.',
  }),
  reason: optional(reason),
})

const instant = z.iso.datetime({ precision: 3 })
const nullable = <Schema extends z.ZodType>(schema: Schema) => z.union([schema, z.null()])
const invitation = z
  .strictObject({
    id: z.uuid(),
    email: z.string(),
    role: nullable(z.enum(['support', 'admin'])),
    state: z.enum(INVITATION_STATES),
    invited_by: nullable(z.uuid()),
    created_at: instant,
    expires_at: instant,
    accepted_at: nullable(instant),
    user_id: nullable(z.uuid()),
    revoked_at: nullable(instant),
  })
  .meta({ id: 'Invitation' })
const example = {
  id: EXAMPLE_IDS.invitation,
  email: 'grace@example.com',
  role: null,
  state: 'pending',
  invited_by: EXAMPLE_IDS.admin,
  created_at: '2026-11-20T19:22:00.000Z',
  expires_at: '2026-11-27T19:22:00.000Z',
  accepted_at: null,
  user_id: null,
  revoked_at: null,
}
const invitationAnswer = { schema: invitation, example }

/** Invitations: who may sign up although sign-up is not open, and with which role. */
export function invitationRoutes(
  { invitations, store }: Pick<HttpPorts, 'invitations' | 'store'>,
  clock: Clock,
): Route[] {
  return [
    route({
      method: 'GET',
      path: '/v1/admin/invitations',
      operation: 'listInvitations',
      tag: TAG,
      summary: 'List invitations',
      description: 'Newest first; 30 days after they expired they are removed.',
      access: 'admin:read',
      query: pageQuery,
      answers: [answers.pageAnswer('One page of invitations.', invitation, example)],
      errors: [],
      async handle({ query: { limit, cursor } }) {
        const slice = await store.invitations.list({ limit, after: cursor ?? null })
        return ok(page(slice, each => invitationObject(each, clock.now())))
      },
    }),
    route({
      method: 'POST',
      path: '/v1/admin/invitations',
      operation: 'invite',
      tag: TAG,
      summary: 'Invite an address',
      description:
        'By mail, for seven days; a pending invitation of the address ends. It is accepted by the first sign-in to the address, which makes the account whatever `sign_up` says, and gives the `role` if who invited is an administrator still. A `role` needs a signed-in administrator, not a key.',
      access: 'admin:write',
      body: newInvitation,
      example: { email: 'grace@example.com' },
      answers: [{ status: 201, description: 'The invitation.', ...invitationAnswer }],
      errors: ['rate_limited'],
      async handle({ body, ...input }) {
        if (body.role !== undefined) assertMayGiveRights(input.principal)
        const details = { email: body.email, role: body.role ?? null, locale: body.locale ?? null }
        const row = await invitations.invite(details, toActedBy(input, body.reason ?? null))
        return created(invitationObject(row, clock.now()))
      },
    }),
    route({
      method: 'DELETE',
      path: '/v1/admin/invitations/{invitation_id}',
      operation: 'revokeInvitation',
      tag: TAG,
      summary: 'Revoke an invitation',
      description: 'Permanent. Repeating it changes nothing, and what was accepted stays so.',
      access: 'admin:write',
      answers: [{ status: 200, description: 'The invitation with its state.', ...invitationAnswer }],
      errors: [],
      async handle({ params, ...input }) {
        const row = await invitations.revoke(params.invitation_id, toActedBy(input))
        return ok(invitationObject(row, clock.now()))
      },
    }),
  ]
}

function invitationObject(row: Invitation, now: Instant): z.infer<typeof invitation> {
  return {
    id: row.id,
    email: row.email,
    role: row.role,
    state: stateOf(row, now),
    invited_by: row.invitedBy,
    created_at: toRfc3339(row.createdAt),
    expires_at: toRfc3339(row.expiresAt),
    accepted_at: toRfc3339OrNull(row.acceptedAt),
    user_id: row.userId,
    revoked_at: toRfc3339OrNull(row.revokedAt),
  }
}
