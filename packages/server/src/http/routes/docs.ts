import { z } from 'zod'
import { publicFor } from '../../cache-control.ts'
import { createStaticBody, type StaticBody } from '../../content-coding.ts'
import { DOCS_CONTENT_SECURITY_POLICY } from '../docs-page.ts'
import { type Route, route } from '../route.ts'

export interface DocsOptions {
  openApi: () => unknown
  docs: () => string
}

const TAG = 'Service'

/** The API documentation, as OpenAPI and as HTML; each is generated and encoded on its first request. */
export function docsRoutes({ openApi, docs }: DocsOptions): Route[] {
  let openApiBody: StaticBody | null = null
  let docsText: Buffer<ArrayBuffer> | null = null

  return [
    route({
      method: 'GET',
      path: '/openapi.json',
      operation: 'getOpenApi',
      tag: TAG,
      summary: 'This document (OpenAPI 3.1)',
      description: 'Generated from the route table and the schemas that validate.',
      access: 'public',
      answers: [
        { status: 200, description: 'The document.', schema: z.looseObject({ openapi: z.string() }) },
        { status: 304, description: 'Unchanged since the `ETag` of `If-None-Match`.' },
      ],
      errors: [],
      async handle({ incoming: { headers } }) {
        openApiBody ??= createStaticBody(Buffer.from(JSON.stringify(openApi())))
        const wanted = {
          acceptEncoding: String(headers['accept-encoding'] ?? ''),
          ifNoneMatch: headers['if-none-match'],
        }
        const { body, headers: selected } = await openApiBody.select(wanted)
        return {
          status: body ? 200 : 304,
          body: body ?? undefined,
          headers: { 'Cache-Control': publicFor(60), ...selected },
        }
      },
    }),
    route({
      method: 'GET',
      path: '/docs',
      operation: 'getDocs',
      tag: TAG,
      summary: 'The API documentation as a web page',
      description: 'Every call with an example, its responses and its errors.',
      access: 'public',
      answers: [{ status: 200, description: 'The page.', schema: z.string(), type: 'text/html' }],
      errors: [],
      handle() {
        docsText ??= Buffer.from(docs())
        const headers = { 'Content-Security-Policy': DOCS_CONTENT_SECURITY_POLICY }
        return { status: 200, body: docsText, type: 'text/html; charset=utf-8', headers }
      },
    }),
  ]
}
