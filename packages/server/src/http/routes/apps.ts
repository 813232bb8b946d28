import { z } from 'zod'
import { parseAmount } from '../../billing/money.ts'
import { toRfc3339 } from '../../clock.ts'
import type { FeedPage } from '../../endings/revocation-feed.ts'
import { invalidRequest, KeywayError } from '../../errors.ts'
import { parseId } from '../../ids.ts'
import { MAX_PAGE_SIZE } from '../../paging.ts'
import { type Answer, created, ok } from '../answer.ts'
import * as answers from '../openapi-schemas.ts'
import { eventStream } from '../revocation-stream.ts'
import { type Route, route } from '../route.ts'
import type { HttpServices } from '../services.ts'
import { text } from '../validation.ts'
import { ledgerEntryObject } from './account.ts'

const MAX_DESCRIPTION_LENGTH = 200
const AMOUNT = 'a positive decimal text with at most 6 places'

const chargeBody = z.object({
  user_id: text("a user's id", answers.EXAMPLE_ID),
  amount: text(AMOUNT, '0.25').transform((value, context) => {
    const amount = parseAmount(value)
    if (amount !== null) return amount
    context.addIssue({ code: 'custom', message: `must be ${AMOUNT}, for example "0.25"` })
    return z.NEVER
  }),
  description: text('what it is for', '1000 messages', { min: 1, max: MAX_DESCRIPTION_LENGTH }),
})

const feedQuery = z.object({
  cursor: z
    .string()
    .optional()
    .meta({ description: '`next_cursor` of an earlier answer, or a `Last-Event-ID`.' }),
})

const TAG = 'Apps'

export function appRoutes({ charges, revocations }: Pick<HttpServices, 'charges' | 'revocations'>): Route[] {
  return [
    route({
      method: 'POST',
      path: '/v1/charges',
      operation: 'createCharge',
      tag: TAG,
      summary: "Charge a user's balance",
      description:
        'Needs the authorisation of the user. The same Idempotency-Key and body again get the same answer for 24 hours.',
      access: 'app',
      body: chargeBody,
      example: { user_id: answers.EXAMPLE_ID, amount: '0.25', description: '1000 messages' },
      idempotencyKey: 'required',
      answers: [
        {
          status: 201,
          description: 'The ledger entry.',
          schema: answers.ledgerEntry,
          example: answers.ledgerEntryExample,
        },
      ],
      errors: ['insufficient_balance', 'charge_not_authorized', 'idempotency_conflict'],
      async handle({ principal, body, idempotencyKey }) {
        // What is no id names no user, and that is answered as a user who never authorised the app.
        const userId = parseId(body.user_id)
        if (!userId)
          throw new KeywayError('charge_not_authorized', 'This user has not authorised this app to charge.')
        const wanted = { userId, amount: body.amount, description: body.description }
        return created(ledgerEntryObject(await charges.charge(principal, wanted, idempotencyKey!)))
      },
    }),
    route({
      method: 'GET',
      path: '/v1/revocations',
      operation: 'followRevocations',
      tag: TAG,
      summary: 'Follow which keys, sessions and users ended',
      description:
        'Without a cursor the last 20 minutes, longer than any agent token lives. An entry may come twice. With `Accept: text/event-stream` the same entries arrive as they happen, each with a cursor as its id.',
      access: 'app',
      query: feedQuery,
      answers: [
        {
          status: 200,
          description: 'Oldest first.',
          schema: answers.revocations,
          example: answers.revocationsExample,
        },
      ],
      errors: [],
      async handle({ query, incoming }) {
        const isStream = incoming.headers.accept?.includes('text/event-stream') && incoming.method === 'GET'
        const cursor = query.cursor ?? (isStream ? lastEventId(incoming.headers['last-event-id']) : null)
        const read = async (from: string | null) => toFeed(await revocations.since(from, MAX_PAGE_SIZE))
        const first = await read(cursor)
        if (!isStream) return ok(first)
        const body = eventStream({ first, read, subscribe: revocations.subscribe })
        const stream: Answer = {
          status: 200,
          type: 'text/event-stream',
          body,
          headers: { 'X-Accel-Buffering': 'no' },
        }
        return stream
      },
    }),
  ]
}

function lastEventId(header: string | string[] | undefined): string | null {
  return typeof header === 'string' && header !== '' ? header : null
}

function toFeed(read: FeedPage | null) {
  if (!read)
    throw invalidRequest([{ field: 'cursor', message: 'must be the next_cursor of an earlier answer' }])
  return {
    data: read.endings.map(ending => ({
      id: ending.id,
      kind: ending.kind,
      subject_id: ending.subjectId,
      user_id: ending.userId,
      at: toRfc3339(ending.at),
    })),
    has_more: read.hasMore,
    next_cursor: read.cursor,
  }
}
