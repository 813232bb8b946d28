import { z } from 'zod'
import { toRfc3339 } from '../../clock.ts'
import type { Ending } from '../../endings/ending.ts'
import type { FeedPage } from '../../endings/revocation-feed.ts'
import { invalidRequest, KeywayError } from '../../errors.ts'
import { type Answer, ok } from '../answer.ts'
import type { HttpPorts } from '../http-ports.ts'
import * as answers from '../openapi-schemas.ts'
import { MAX_PAGE_SIZE } from '../query.ts'
import { eventStream } from '../revocation-stream.ts'
import { type Route, route } from '../route.ts'

const feedQuery = z.object({
  cursor: z
    .string()
    .optional()
    .meta({ description: '`next_cursor` of an earlier answer, or a `Last-Event-ID`.' }),
})

/** Maximum number of open streams of one app on this node; an app needs one for each of its own nodes. */
export const MAX_STREAMS_PER_APP = 20
const RETRY_SECONDS = 10

export function revocationRoutes({ revocations }: Pick<HttpPorts, 'revocations'>): Route[] {
  /** By app id. */
  const streamCounts = new Map<string, number>()

  return [
    route({
      method: 'GET',
      path: '/v1/revocations',
      operation: 'followRevocations',
      tag: 'Apps',
      summary: 'Follow which keys, sessions and users ended',
      description:
        'Without a cursor it starts 20 minutes ago, longer than the lifetime of an agent token. An entry may come twice. With `Accept: text/event-stream` the same entries arrive as they happen, each with a cursor as its id; the stream ends when the secret that opened it is no longer valid.',
      access: 'app',
      query: feedQuery,
      answers: [answers.okAnswer('Oldest first.', answers.revocations, answers.revocationsExample)],
      errors: ['rate_limited'],
      async handle({ principal, query, incoming, reauthenticate }) {
        const isStream = incoming.headers.accept?.includes('text/event-stream') && incoming.method === 'GET'
        const cursor = query.cursor ?? (isStream ? lastEventId(incoming.headers['last-event-id']) : null)
        const readPage = async (from: string | null) =>
          validPage(await revocations.since(from, MAX_PAGE_SIZE))
        const firstPage = await readPage(cursor)
        if (!isStream) return ok(toFeed(firstPage))
        reserveStream(principal.id)
        const onEnd = () => releaseStream(principal.id)
        const body = eventStream({
          firstPage: toStreamPage(firstPage),
          read: async from => toStreamPage(await readPage(from)),
          reauthenticate,
          subscribe: revocations.subscribe,
          onEnd,
        })
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

  function reserveStream(appId: string): void {
    const count = streamCounts.get(appId) ?? 0
    if (count >= MAX_STREAMS_PER_APP) {
      const detail = `An app may follow with ${MAX_STREAMS_PER_APP} streams at once. Close one first.`
      throw new KeywayError('rate_limited', detail, { retryAfter: RETRY_SECONDS })
    }
    streamCounts.set(appId, count + 1)
  }

  function releaseStream(appId: string): void {
    const remainingCount = streamCounts.get(appId)! - 1
    if (remainingCount > 0) streamCounts.set(appId, remainingCount)
    else streamCounts.delete(appId)
  }
}

function lastEventId(header: string | string[] | undefined): string | null {
  return typeof header === 'string' && header !== '' ? header : null
}

function validPage(page: FeedPage | null): FeedPage {
  if (page) return page
  throw invalidRequest([{ field: 'cursor', message: 'must be the next_cursor of an earlier answer' }])
}

function toFeed({ endings, hasMore, cursor }: FeedPage) {
  return { data: endings.map(toRevocation), has_more: hasMore, next_cursor: cursor }
}

function toStreamPage({ endings, hasMore, cursor, cursorAfter }: FeedPage) {
  const entries = endings.map(ending => ({ data: toRevocation(ending), cursor: cursorAfter(ending) }))
  return { entries, hasMore, cursor }
}

function toRevocation({ id, kind, subjectId, userId, at }: Ending) {
  return { id, kind, subject_id: subjectId, user_id: userId, at: toRfc3339(at) }
}
