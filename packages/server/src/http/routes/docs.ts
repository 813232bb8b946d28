import { z } from 'zod'
import { publicFor } from '../../cache-control.ts'
import { DOCS_CONTENT_SECURITY_POLICY } from '../docs-page.ts'
import { type Route, route } from '../route.ts'

export interface DocsOptions {
  openApi: () => unknown
  docs: () => string
}

const TAG = 'Service'

/** This API, for programs and for people; each is made when it is first asked for. */
export function docsRoutes({ openApi, docs }: DocsOptions): Route[] {
  let openApiText: string | null = null
  let docsText: string | null = null

  return [
    route({
      method: 'GET',
      path: '/openapi.json',
      operation: 'getOpenApi',
      tag: TAG,
      summary: 'This document (OpenAPI 3.1)',
      description: 'Made from the schemas that validate and the table that routes.',
      access: 'public',
      answers: [
        { status: 200, description: 'The document.', schema: z.looseObject({ openapi: z.string() }) },
      ],
      errors: [],
      handle() {
        openApiText ??= JSON.stringify(openApi())
        return { status: 200, body: openApiText, headers: { 'Cache-Control': publicFor(60) } }
      },
    }),
    route({
      method: 'GET',
      path: '/docs',
      operation: 'getDocs',
      tag: TAG,
      summary: 'This API, for people',
      description: 'One page with every call, an example of it, its answers and its errors.',
      access: 'public',
      answers: [{ status: 200, description: 'The page.', schema: z.string(), type: 'text/html' }],
      errors: [],
      handle() {
        docsText ??= docs()
        const headers = { 'Content-Security-Policy': DOCS_CONTENT_SECURITY_POLICY }
        return { status: 200, body: docsText, type: 'text/html; charset=utf-8', headers }
      },
    }),
  ]
}
