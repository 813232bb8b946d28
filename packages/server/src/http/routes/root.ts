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
  /** Whether listening address, peer and Host are this machine's own, and no proxy stands between. */
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
 * `GET /`: programs are told where everything else is, and browsers are left to the pages, which know who is signed in
 * and send them on to /keys or /sign-in (web/pages.ts).
 */
export function rootRoutes({ version, publicUrl, hasInbox, isLocal }: RootOptions): Route[] {
  return [
    route({
      method: 'GET',
      path: '/',
      operation: 'getService',
      tag: 'Service',
      summary: 'Where things are',
      description: 'For programs; browsers are sent to the pages.',
      access: 'public',
      leftToPages: wantsPage,
      answers: [{ status: 200, description: 'Addresses.', schema: root, example: addresses(true) }],
      errors: [],
      handle: ({ incoming }) => ok(addresses(isLocal(incoming))),
    }),
  ]

  function addresses(local: boolean) {
    return {
      name: 'Keyway',
      version,
      hub_url: hubUrl(publicUrl),
      openapi_url: `${publicUrl}/openapi.json`,
      docs_url: `${publicUrl}/docs`,
      ...(hasInbox && local && { inbox_url: `${publicUrl}/inbox` }),
    }
  }
}
