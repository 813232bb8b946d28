import { z } from 'zod'
import { toRfc3339 } from '../../../clock.ts'
import { page } from '../../../paging.ts'
import type { WebhookDelivery } from '../../../webhooks/webhook.ts'
import { isWebhookEventType, WEBHOOK_EVENT_TYPES } from '../../../webhooks/webhook-event.ts'
import type { WebhookStatus, Webhooks } from '../../../webhooks/webhooks.ts'
import { created, NO_CONTENT, ok } from '../../answer.ts'
import { expected, optional, text } from '../../body-fields.ts'
import { EXAMPLE_IDS } from '../../example-ids.ts'
import * as answers from '../../openapi-schemas.ts'
import { pageQuery } from '../../query.ts'
import { type Route, route } from '../../route.ts'
import { MAX_FIELD_NAME_LENGTH, suggestion } from '../../unknown-name.ts'
import { assertMayGiveRights, reason, reasonBody, TAG, toActedBy } from './acting.ts'

const nullable = <Schema extends z.ZodType>(schema: Schema) => z.union([schema, z.null()])
const instant = z.iso.datetime({ precision: 3 })
const EXAMPLE_AT = '2026-11-20T19:22:00.000Z'

const url = text('an https URL', 'https://hooks.example.com/keyway', { min: 1, max: 2048 })
const events = z
  .array(
    text('a kind of event', 'user.created', { max: 64 }).transform((name, context) => {
      if (isWebhookEventType(name)) return name
      const hint = suggestion(name, WEBHOOK_EVENT_TYPES).replace('known fields', 'known kinds')
      const quotedName = JSON.stringify(name.slice(0, MAX_FIELD_NAME_LENGTH))
      context.addIssue({ code: 'custom', message: `${quotedName} is no kind of event; ${hint}` })
      return z.NEVER
    }),
    { error: expected('a list of kinds of events', '["user.created"]') },
  )
  .max(WEBHOOK_EVENT_TYPES.length, { error: `must have at most ${WEBHOOK_EVENT_TYPES.length} entries` })
const newWebhook = z.strictObject({ url, events: optional(events), reason: optional(reason) })
const webhookChange = z.strictObject({
  url: optional(url),
  events: optional(events),
  enabled: optional(z.boolean({ error: expected('true or false', 'true') })),
  reason: optional(reason),
})

const webhook = z
  .strictObject({
    id: z.uuid(),
    url: z.string(),
    events: z.array(z.string()),
    enabled: z.boolean(),
    disabled_at: nullable(instant),
    disabled_by: nullable(z.enum(['person', 'failures'])),
    created_at: instant,
    secrets: z.array(z.strictObject({ id: z.uuid(), created_at: instant })),
    waiting: z.int(),
    oldest_waiting_at: nullable(instant),
    dropped: z.int(),
  })
  .meta({ id: 'Webhook' })
const webhookExample = {
  id: EXAMPLE_IDS.webhook,
  url: 'https://hooks.example.com/keyway',
  events: ['user.created', 'balance.low'],
  enabled: true,
  disabled_at: null,
  disabled_by: null,
  created_at: EXAMPLE_AT,
  secrets: [{ id: EXAMPLE_IDS.secret, created_at: EXAMPLE_AT }],
  waiting: 0,
  oldest_waiting_at: null,
  dropped: 0,
}
const delivery = z
  .strictObject({
    id: z.uuid(),
    webhook_id: z.uuid(),
    type: z.string(),
    subject: z.strictObject({ type: z.string(), id: z.string() }),
    sequence: z.int(),
    data: z.record(z.string(), z.unknown()),
    state: z.enum(['waiting', 'delivered', 'failed', 'dropped']),
    attempts: z.int(),
    created_at: instant,
    settled_at: nullable(instant),
    last_attempt_at: nullable(instant),
    duration_ms: nullable(z.int()),
    status: nullable(z.int()),
    error: nullable(z.string()),
    answer: nullable(z.string()),
  })
  .meta({ id: 'WebhookDelivery' })
const deliveryExample = {
  id: EXAMPLE_IDS.delivery,
  webhook_id: EXAMPLE_IDS.webhook,
  type: 'user.created',
  subject: { type: 'user', id: EXAMPLE_IDS.user },
  sequence: 1,
  data: { user_id: EXAMPLE_IDS.user, role: 'user', status: 'active' },
  state: 'delivered',
  attempts: 1,
  created_at: EXAMPLE_AT,
  settled_at: EXAMPLE_AT,
  last_attempt_at: EXAMPLE_AT,
  duration_ms: 43,
  status: 204,
  error: null,
  answer: '',
}
const webhookAnswer = { schema: webhook, example: webhookExample }
const deliveryAnswer = { schema: delivery, example: deliveryExample }
const deliveryQuery = pageQuery.extend({
  state: z
    .enum(['waiting', 'delivered', 'failed', 'dropped'], {
      error: 'must be waiting, delivered, failed or dropped',
    })
    .optional(),
})

export function webhookRoutes({ webhooks }: { webhooks(): Promise<Webhooks> }): Route[] {
  return [
    route({
      method: 'GET',
      path: '/v1/admin/webhooks',
      operation: 'listWebhooks',
      tag: TAG,
      summary: 'List the webhooks',
      description: 'All of them, oldest first, with the number of events that wait or were dropped.',
      access: 'admin:read',
      answers: [
        answers.okAnswer('The webhooks.', z.strictObject({ data: z.array(webhook) }), {
          data: [webhookExample],
        }),
      ],
      errors: [],
      async handle() {
        return ok({ data: (await (await webhooks()).list()).map(webhookObject) })
      },
    }),
    route({
      method: 'POST',
      path: '/v1/admin/webhooks',
      operation: 'createWebhook',
      tag: TAG,
      summary: 'Create a webhook',
      description:
        'Only this response contains `secret`, with which bodies are signed as the Standard Webhooks specification says. No `events`: all. What happens from two seconds after the response on is sent for certain, and usually all after it.',
      access: 'admin:session',
      body: newWebhook,
      example: { url: 'https://hooks.example.com/keyway', events: ['user.created'] },
      answers: [
        {
          status: 201,
          description: 'The webhook, and `secret`.',
          schema: webhook.extend({ secret: z.string() }).meta({ id: 'CreatedWebhook' }),
          example: { ...webhookExample, secret: 'whsec_EXAMPLE' },
        },
      ],
      errors: [],
      async handle({ body, ...input }) {
        const endpoint = { url: body.url, events: body.events ?? [] }
        const result = await (await webhooks()).create(endpoint, toActedBy(input, body.reason ?? null))
        return created({ ...webhookObject(result.webhook), secret: result.secret })
      },
    }),
    route({
      method: 'GET',
      path: '/v1/admin/webhooks/{webhook_id}',
      operation: 'getWebhook',
      tag: TAG,
      summary: 'Read a webhook',
      description: 'Never a secret.',
      access: 'admin:read',
      answers: [{ status: 200, description: 'The webhook.', ...webhookAnswer }],
      errors: [],
      async handle({ params }) {
        return ok(webhookObject(await (await webhooks()).find(params.webhook_id)))
      },
    }),
    route({
      method: 'PATCH',
      path: '/v1/admin/webhooks/{webhook_id}',
      operation: 'updateWebhook',
      tag: TAG,
      summary: 'Change a webhook',
      description:
        'Omitted fields stay; an empty list of events means all. `url` needs a signed-in administrator, not a key. While it is disabled nothing is sent or queued; what waits is kept, and sent when it is enabled again.',
      access: 'admin:write',
      body: webhookChange,
      example: { enabled: true },
      answers: [{ status: 200, description: 'The webhook.', ...webhookAnswer }],
      errors: [],
      async handle({ params, body, ...input }) {
        const { reason: auditReason, ...change } = body
        // A key may not change the URL: the new one receives all further events, even after the key has ended.
        if (change.url !== undefined) assertMayGiveRights(input.principal)
        const actedBy = toActedBy(input, auditReason ?? null)
        return ok(webhookObject(await (await webhooks()).change(params.webhook_id, change, actedBy)))
      },
    }),
    route({
      method: 'DELETE',
      path: '/v1/admin/webhooks/{webhook_id}',
      operation: 'removeWebhook',
      tag: TAG,
      summary: 'Remove a webhook',
      description: 'What waits is not sent any more.',
      access: 'admin:write',
      answers: [{ status: 204, description: 'It is removed.' }],
      errors: [],
      async handle({ params, ...input }) {
        await (await webhooks()).remove(params.webhook_id, toActedBy(input))
        return NO_CONTENT
      },
    }),
    route({
      method: 'POST',
      path: '/v1/admin/webhooks/{webhook_id}/secrets',
      operation: 'createWebhookSecret',
      tag: TAG,
      summary: 'Create a new secret for a webhook',
      description:
        'Only this response contains it. Bodies are signed with all secrets, at most five, so that the endpoint can change over; then remove the old one.',
      access: 'admin:session',
      body: reasonBody,
      example: {},
      answers: [
        {
          status: 201,
          description: 'The secret.',
          schema: z.strictObject({ id: z.uuid(), secret: z.string() }).meta({ id: 'WebhookSecret' }),
          example: { id: EXAMPLE_IDS.secret, secret: 'whsec_EXAMPLE' },
        },
      ],
      errors: [],
      async handle({ params, body, ...input }) {
        const actedBy = toActedBy(input, body.reason ?? null)
        return created({ ...(await (await webhooks()).addSecret(params.webhook_id, actedBy)) })
      },
    }),
    route({
      method: 'DELETE',
      path: '/v1/admin/webhooks/{webhook_id}/secrets/{secret_id}',
      operation: 'removeWebhookSecret',
      tag: TAG,
      summary: 'Remove a secret of a webhook',
      description: 'Nothing is signed with it any more. The only one stays.',
      access: 'admin:write',
      answers: [{ status: 204, description: 'It is removed.' }],
      errors: ['invalid_request'],
      async handle({ params, ...input }) {
        await (await webhooks()).removeSecret(params.webhook_id, params.secret_id, toActedBy(input))
        return NO_CONTENT
      },
    }),
    route({
      method: 'POST',
      path: '/v1/admin/webhooks/{webhook_id}/test',
      operation: 'testWebhook',
      tag: TAG,
      summary: 'Send a test event to a webhook',
      description:
        'Sends `webhook.test` at once, also while it is disabled, and answers with what came of it. It is not repeated.',
      access: 'admin:write',
      answers: [{ status: 200, description: 'The delivery, `delivered` or `failed`.', ...deliveryAnswer }],
      errors: ['rate_limited'],
      async handle({ params, ...input }) {
        return ok(deliveryObject(await (await webhooks()).test(params.webhook_id, toActedBy(input))))
      },
    }),
    route({
      method: 'GET',
      path: '/v1/admin/webhooks/{webhook_id}/deliveries',
      operation: 'listWebhookDeliveries',
      tag: TAG,
      summary: 'List what was sent to a webhook, or waits',
      description:
        'Newest first, with the outcome of the last attempt and the first KiB of its answer. Kept for seven days after an event was delivered or given up.',
      access: 'admin:read',
      query: deliveryQuery,
      answers: [answers.pageAnswer('One page of deliveries.', delivery, deliveryExample)],
      errors: [],
      async handle({ params, query: { limit, cursor, state } }) {
        const request = { limit, after: cursor ?? null }
        const slice = await (await webhooks()).deliveries(params.webhook_id, state ?? null, request)
        return ok(page(slice, deliveryObject))
      },
    }),
    route({
      method: 'POST',
      path: '/v1/admin/deliveries/{delivery_id}/send-again',
      operation: 'sendWebhookDeliveryAgain',
      tag: TAG,
      summary: 'Send an event to its webhook again',
      description: 'Under the same id and number, before later events of its subject that wait.',
      access: 'admin:write',
      answers: [{ status: 200, description: 'The delivery, waiting.', ...deliveryAnswer }],
      errors: ['invalid_request'],
      async handle({ params, ...input }) {
        return ok(deliveryObject(await (await webhooks()).sendAgain(params.delivery_id, toActedBy(input))))
      },
    }),
  ]
}

function webhookObject(row: WebhookStatus): z.infer<typeof webhook> {
  return {
    id: row.id,
    url: row.url,
    events: row.events,
    enabled: row.disabledAt === null,
    disabled_at: instantOrNull(row.disabledAt),
    disabled_by: row.disabledBy,
    created_at: toRfc3339(row.createdAt),
    secrets: row.secrets.map(({ id, createdAt }) => ({ id, created_at: toRfc3339(createdAt) })),
    waiting: row.waiting,
    oldest_waiting_at: instantOrNull(row.oldestWaitingAt),
    dropped: row.dropped,
  }
}

function deliveryObject(row: WebhookDelivery): z.infer<typeof delivery> {
  return {
    id: row.id,
    webhook_id: row.webhookId,
    type: row.type,
    subject: row.subject,
    sequence: row.sequence,
    data: JSON.parse(row.data),
    state: row.state,
    attempts: row.attempts,
    created_at: toRfc3339(row.createdAt),
    settled_at: instantOrNull(row.settledAt),
    last_attempt_at: instantOrNull(row.lastAttempt?.at ?? null),
    duration_ms: row.lastAttempt?.durationMs ?? null,
    status: row.lastAttempt?.status ?? null,
    error: row.lastAttempt?.error ?? null,
    answer: row.lastAttempt?.answer ?? null,
  }
}

function instantOrNull(at: number | null): string | null {
  return at === null ? null : toRfc3339(at)
}
