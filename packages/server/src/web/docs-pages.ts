import type { Hono } from 'hono'
import type { DocsHandlers } from './docs/pages.ts'
import type { PageContext, PageKit, PageVariables } from './kit.ts'

/** /docs and /errors: the documentation, loaded by the first request, since few people open it on a given node. */
export function docsPages(app: Hono<PageVariables>, kit: PageKit): void {
  let loading: Promise<DocsHandlers> | undefined
  const by = (name: keyof DocsHandlers) => async (c: PageContext) => {
    loading ??= import('./docs/pages.ts').then(({ createDocsHandlers }) => createDocsHandlers(kit))
    return (await loading)[name](c)
  }
  app.get('/docs', by('guide'))
  app.get('/docs/search', by('search'))
  app.get('/docs/errors', by('errors'))
  app.get('/docs/api/:tag', by('tag'))
  app.get('/docs/call/:operation', by('operation'))
  app.post('/docs/call/:operation', by('makeCall'))
  app.get('/docs/call/:operation/sign-in', by('signIn'))
  app.get('/docs/:page', by('guide'))
  app.get('/errors/:code', by('error'))
}
