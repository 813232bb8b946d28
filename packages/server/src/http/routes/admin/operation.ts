import { z } from 'zod'
import { toRfc3339 } from '../../../clock.ts'
import { page } from '../../../paging.ts'
import { parseEmailAddress } from '../../../users/email-address.ts'
import { NO_CONTENT, ok } from '../../answer.ts'
import { email } from '../../body-fields.ts'
import { EXAMPLE_IDS } from '../../example-ids.ts'
import type { HttpPorts } from '../../http-ports.ts'
import { notFound } from '../../not-found.ts'
import * as answers from '../../openapi-schemas.ts'
import { pageQuery } from '../../query.ts'
import { type Route, route } from '../../route.ts'
import { reasonBody, TAG, toActedBy } from './acting.ts'
import * as objects from './objects.ts'

const mailQuery = pageQuery.extend({
  state: z
    .enum(['queued', 'sent', 'failed', 'expired'], { error: 'must be queued, sent, failed or expired' })
    .optional(),
})

const suppressionQuery = z.object({
  limit: pageQuery.shape.limit,
  after: email.optional().meta({ description: 'Addresses after this one.' }),
})

const mailAnswer = { schema: objects.mail, example: objects.mailExample }

type Deps = Pick<HttpPorts, 'administration' | 'suppressions' | 'signingKeys'>

/** Calls of administrators about agents, nodes, mail and signing keys. */
export function operationRoutes({ administration, suppressions, signingKeys }: Deps): Route[] {
  return [
    route({
      method: 'GET',
      path: '/v1/admin/agents',
      operation: 'listAllAgents',
      tag: TAG,
      summary: 'List the live connections of everybody',
      description: 'On all nodes, newest first.',
      access: 'admin:read',
      query: pageQuery,
      answers: [answers.pageAnswer('One page of connections.', objects.agent, objects.agentExample)],
      errors: [],
      async handle({ query: { limit, cursor } }) {
        return ok(page(await administration.agents({ limit, after: cursor ?? null }), objects.agentObject))
      },
    }),
    route({
      method: 'DELETE',
      path: '/v1/admin/agents/{connection_id}',
      operation: 'disconnectAnyAgent',
      tag: TAG,
      summary: "Close anybody's connection",
      description: 'On whatever node it is. The agent may connect again; revoke its key to prevent that.',
      access: 'admin:write',
      answers: [{ status: 204, description: 'It is closed.' }],
      errors: [],
      async handle({ params, ...input }) {
        await administration.disconnect(params.connection_id, toActedBy(input))
        return NO_CONTENT
      },
    }),
    route({
      method: 'GET',
      path: '/v1/admin/nodes',
      operation: 'listNodes',
      tag: TAG,
      summary: 'List the running nodes',
      description: 'Oldest first, with their connections.',
      access: 'admin:read',
      answers: [
        {
          status: 200,
          description: 'The nodes.',
          schema: z.strictObject({ data: z.array(objects.node) }),
          example: { data: [objects.nodeExample] },
        },
      ],
      errors: [],
      async handle() {
        return ok({ data: (await administration.nodes()).map(objects.nodeObject) })
      },
    }),
    route({
      method: 'GET',
      path: '/v1/admin/mails',
      operation: 'listMails',
      tag: TAG,
      summary: 'List mails by state',
      description:
        'Newest first: template, state and times, and the masked recipient; never a body, link or code.',
      access: 'admin:read',
      query: mailQuery,
      answers: [answers.pageAnswer('One page of mails.', objects.mail, objects.mailExample)],
      errors: [],
      async handle({ query: { limit, cursor, state } }) {
        const slice = await administration.mails(state ?? null, { limit, after: cursor ?? null })
        return ok(page(slice, objects.mailObject))
      },
    }),
    route({
      method: 'POST',
      path: '/v1/admin/mails/{mail_id}/send-again',
      operation: 'sendMailAgain',
      tag: TAG,
      summary: 'Send a failed notice again',
      description:
        'Notices only: for a sign-in mail the person asks anew. A mail whose link has expired, as of an invitation, is not sent again.',
      access: 'admin:write',
      answers: [{ status: 200, description: 'The mail, queued.', ...mailAnswer }],
      errors: ['mail_not_available'],
      async handle({ params, ...input }) {
        return ok(objects.mailObject(await administration.sendAgain(params.mail_id, toActedBy(input))))
      },
    }),
    route({
      method: 'POST',
      path: '/v1/admin/mails/test',
      operation: 'sendTestMail',
      tag: TAG,
      summary: 'Send a test mail',
      description: 'Queues it; its state says whether it was accepted.',
      access: 'admin:write',
      body: z.strictObject({ email }),
      example: { email: 'ada@example.com' },
      answers: [{ status: 200, description: 'The mail, queued.', ...mailAnswer }],
      errors: [],
      async handle({ body, ...input }) {
        return ok(objects.mailObject(await administration.testMail(body.email, toActedBy(input))))
      },
    }),
    route({
      method: 'GET',
      path: '/v1/admin/suppressions',
      operation: 'listSuppressions',
      tag: TAG,
      summary: 'List suppressed addresses',
      description: 'To which no mail is sent for seven days after a bounce or a complaint, in their order.',
      access: 'admin:read',
      query: suppressionQuery,
      answers: [
        {
          status: 200,
          description: 'The addresses.',
          schema: z.strictObject({ data: z.array(objects.suppression) }),
          example: { data: [objects.suppressionExample] },
        },
      ],
      errors: [],
      async handle({ query: { limit, after } }) {
        const rows = await administration.suppressions(after ?? null, limit)
        return ok({ data: rows.map(objects.suppressionObject) })
      },
    }),
    route({
      method: 'DELETE',
      path: '/v1/admin/suppressions/{address}',
      operation: 'liftSuppression',
      tag: TAG,
      summary: 'Allow mail to an address again',
      description: 'Repeating it changes nothing.',
      access: 'admin:write',
      answers: [{ status: 204, description: 'Mail is sent to it again.' }],
      errors: [],
      async handle({ params, ...input }) {
        const address = parseEmailAddress(params.address)
        if (!address) throw notFound()
        await suppressions.lift(address, toActedBy(input))
        return NO_CONTENT
      },
    }),
    route({
      method: 'POST',
      path: '/v1/admin/signing-keys/rotate',
      operation: 'rotateSigningKeys',
      tag: TAG,
      summary: 'Rotate the keys that sign tokens',
      description:
        'The new ones are published now and sign later; the old ones stay published until nothing needs them.',
      access: 'admin:session',
      body: reasonBody,
      example: {},
      answers: [
        {
          status: 200,
          description: 'The new keys.',
          schema: z.strictObject({ kid: z.string(), signs_from: z.iso.datetime({ precision: 3 }) }),
          example: { kid: EXAMPLE_IDS.signing_key, signs_from: '2026-11-20T19:22:00.000Z' },
        },
      ],
      errors: [],
      async handle({ body, ...input }) {
        const { kid, signsFrom } = await signingKeys.rotate(toActedBy(input, body.reason ?? null))
        return ok({ kid, signs_from: toRfc3339(signsFrom) })
      },
    }),
  ]
}
