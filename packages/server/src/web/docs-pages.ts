import type { Hono } from 'hono'
import type { DocsHandlers } from './docs/pages.ts'
import type { PageContext, PageKit, PageVariables } from './kit.ts'

/** /docs and /errors: the documentation, loaded by the first request, since few people open it on a given node. */
export function docsPages(app: Hono<PageVariables>, kit: PageKit): void {
  let loading: Promise<DocsHandlers> | undefined
  const handler = (name: keyof DocsHandlers) => async (c: PageContext) => {
    loading ??= import('./docs/pages.ts').then(({ createDocsHandlers }) => createDocsHandlers(kit))
    return (await loading)[name](c)
  }
  app.get('/docs', handler('guide'))
  app.get('/docs/search', handler('search'))
  app.get('/docs/errors', handler('errors'))
  app.get('/docs/api/:tag', handler('tag'))
  app.get('/docs/call/:operation', handler('operation'))
  app.post('/docs/call/:operation', handler('makeCall'))
  app.get('/docs/call/:operation/sign-in', handler('signIn'))
  app.get('/docs/:page', handler('guide'))
  app.get('/errors/:code', handler('error'))
}
