import { z } from 'zod'
import { publicFor } from '../../cache-control.ts'
import { createStaticBody, type StaticBody } from '../../content-coding.ts'
import { type Route, route } from '../route.ts'

export interface DocsOptions {
  openApi: () => unknown
}

const TAG = 'Service'

/**
 * The API documentation as OpenAPI, generated and encoded on its first request, and the start page of the
 * documentation.
 */
export function docsRoutes({ openApi }: DocsOptions): Route[] {
  let openApiBody: StaticBody | null = null

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
        const preferences = {
          acceptEncoding: String(headers['accept-encoding'] ?? ''),
          ifNoneMatch: headers['if-none-match'],
        }
        const { body, headers: bodyHeaders } = await openApiBody.select(preferences)
        return {
          status: body ? 200 : 304,
          body: body ?? undefined,
          headers: { 'Cache-Control': publicFor(60), ...bodyHeaders },
        }
      },
    }),
    route({
      method: 'GET',
      path: '/docs',
      operation: 'getDocs',
      tag: TAG,
      summary: 'The documentation as web pages',
      description: 'Guides, and every call with examples, its responses and its errors.',
      access: 'public',
      answers: [{ status: 200, description: 'The page.', schema: z.string(), type: 'text/html' }],
      errors: [],
      leftToPages: () => true,
      handle: () => ({
        status: 200,
        body: '<!doctype html><title>API</title><a href="/openapi.json">/openapi.json</a>',
        type: 'text/html; charset=utf-8',
      }),
    }),
  ]
}
