import type { Json } from '@keyway/sdk/protocol'
import { z } from 'zod'
import { connectionObject } from '../../hub/connection-object.ts'
import { MAX_FRAME_ID_LENGTH } from '../../hub/frame.ts'
import type { PresenceRow } from '../../hub/presence-store.ts'
import { type Position, page, toSlice } from '../../paging.ts'
import { NO_CONTENT, ok } from '../answer.ts'
import { json, optional, text } from '../body-fields.ts'
import type { HttpPorts } from '../http-ports.ts'
import { notFound } from '../not-found.ts'
import * as answers from '../openapi-schemas.ts'
import { pageQuery } from '../query.ts'
import { type Route, route } from '../route.ts'

const TAG = 'Agents'
const replyTo = text('the id of the message that this one answers', '7f3a', {
  min: 1,
  max: MAX_FRAME_ID_LENGTH,
})

export function agentRoutes({ hub, meter }: Pick<HttpPorts, 'hub' | 'meter'>): Route[] {
  return [
    route({
      method: 'GET',
      path: '/v1/agents',
      operation: 'listAgents',
      tag: TAG,
      summary: 'List your live connections',
      description: 'On all nodes, newest first.',
      access: 'agents:read',
      query: pageQuery,
      answers: [
        answers.pageAnswer('One page of connections.', answers.connection, answers.connectionExample),
      ],
      errors: [],
      async handle({ principal, query: { limit, cursor } }) {
        const rows = (await hub.connections(principal.userId)).filter(row => isAfter(row, cursor ?? null))
        return ok(page(toSlice(rows.slice(0, limit + 1), limit, positionOf), connectionObject))
      },
    }),
    route({
      method: 'POST',
      path: '/v1/agents/{connection_id}/messages',
      operation: 'sendToAgent',
      tag: TAG,
      summary: 'Send a message to a live connection',
      description:
        'The id of a connection, or of a key: all of its connections. It arrives as `message` with `from` "api".',
      access: 'agents:send',
      body: z.object({ data: json, reply_to: optional(replyTo) }),
      maxJsonValues: Number.POSITIVE_INFINITY,
      example: { data: { hello: 'world' } },
      answers: [
        {
          status: 200,
          description:
            'The number of open connections that it was written to, and of broken ones that get it if they resume in time.',
          schema: z.strictObject({ delivered: z.int(), held: z.int() }),
          example: { delivered: 1, held: 0 },
        },
      ],
      errors: ['rate_limited'],
      async handle({ principal, params, body }) {
        const { data, reply_to } = body
        const outcome = await hub.sendTo(principal.userId, params.connection_id, data as Json, reply_to)
        if (!outcome) throw notFound()
        meter.count(principal.userId, principal.keyId, 'messagesSent')
        return ok({ ...outcome })
      },
    }),
    route({
      method: 'DELETE',
      path: '/v1/agents/{connection_id}',
      operation: 'disconnectAgent',
      tag: TAG,
      summary: 'Close a live connection',
      description: 'The agent may connect again while its key is active; revoke the key to prevent that.',
      access: 'owner',
      answers: [{ status: 204, description: 'The connection is closed.' }],
      errors: [],
      async handle({ principal, params }) {
        if (!(await hub.disconnect(principal.userId, params.connection_id))) throw notFound()
        return NO_CONTENT
      },
    }),
  ]
}

function positionOf({ connectedAt, connectionId }: PresenceRow): Position {
  return { at: connectedAt, id: connectionId }
}

function isAfter({ connectedAt, connectionId }: PresenceRow, after: Position | null): boolean {
  if (!after || connectedAt < after.at) return true
  return connectedAt === after.at && connectionId < after.id
}
