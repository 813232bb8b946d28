import type { IncomingMessage } from 'node:http'
import { z } from 'zod'
import { wantsPage } from '../accept.ts'
import { ok } from '../answer.ts'
import { type Route, route } from '../route.ts'
import { hubUrl } from './hub.ts'

export interface RootOptions {
  version: string
  publicUrl: string
  hasInbox: boolean
  /** See `Callers.isLocal`. */
  isLocal: (incoming: IncomingMessage) => boolean
}

const root = z.strictObject({
  name: z.string(),
  version: z.string(),
  hub_url: z.string(),
  openapi_url: z.string(),
  docs_url: z.string(),
  inbox_url: z.string().optional(),
})

/**
 * `GET /`: programs get the service's URLs. Browsers are left to the pages, which redirect them to /keys or /sign-in
 * (web/pages.ts).
 */
export function rootRoutes({ version, publicUrl, hasInbox, isLocal }: RootOptions): Route[] {
  return [
    route({
      method: 'GET',
      path: '/',
      operation: 'getService',
      tag: 'Service',
      summary: 'The URLs of this service',
      description: 'For programs; browsers are redirected to the pages.',
      access: 'public',
      leftToPages: wantsPage,
      answers: [{ status: 200, description: 'URLs.', schema: root, example: urls(true) }],
      errors: [],
      handle: ({ incoming }) => ok(urls(isLocal(incoming))),
    }),
  ]

  function urls(isLocalRequest: boolean) {
    return {
      name: 'Keyway',
      version,
      hub_url: hubUrl(publicUrl),
      openapi_url: `${publicUrl}/openapi.json`,
      docs_url: `${publicUrl}/docs`,
      ...(hasInbox && isLocalRequest && { inbox_url: `${publicUrl}/inbox` }),
    }
  }
}
