import type { HttpPorts } from '../../http-ports.ts'
import { notFound } from '../../not-found.ts'
import { type Route, route } from '../../route.ts'
import { USAGE_ANSWER, USAGE_DESCRIPTION, usageAnswer, usageQuery } from '../usage.ts'
import { TAG } from './acting.ts'

/** Usage of any person or key, with the same answers as for the owner. */
export function usageOfOthersRoutes({
  apiKeys,
  usage,
  users,
}: Pick<HttpPorts, 'apiKeys' | 'usage' | 'users'>): Route[] {
  return [
    route({
      method: 'GET',
      path: '/v1/admin/users/{user_id}/usage',
      operation: 'getUsageOfUser',
      tag: TAG,
      summary: 'What a person used, with all keys and without',
      description: USAGE_DESCRIPTION,
      access: 'admin:read',
      query: usageQuery,
      answers: [USAGE_ANSWER],
      errors: [],
      async handle({ params, query, incoming }) {
        const user = await users.get(params.user_id)
        if (!user) throw notFound()
        return usageAnswer(await usage.ofUser(user.id, query), incoming)
      },
    }),
    route({
      method: 'GET',
      path: '/v1/admin/api-keys/{key_id}/usage',
      operation: 'getUsageOfAnyKey',
      tag: TAG,
      summary: "What anybody's key was used for",
      description: USAGE_DESCRIPTION,
      access: 'admin:read',
      query: usageQuery,
      answers: [USAGE_ANSWER],
      errors: [],
      async handle({ params, query, incoming }) {
        const key = (await apiKeys.findMany([params.key_id])).get(params.key_id)
        if (!key) throw notFound()
        return usageAnswer(await usage.ofKey(key.userId, key.id, query), incoming)
      },
    }),
  ]
}
