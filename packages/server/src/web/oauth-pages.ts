import type { Hono } from 'hono'
import type { PageKit, PageVariables } from './kit.ts'
import { allowOpener } from './security-headers.ts'

/**
 * /oauth/authorize; /oauth/consent, which continues a request after a sign-in and receives the person's decision;
 * /oauth/logout. Their code is loaded on first use.
 */
export function oauthPages(app: Hono<PageVariables>, kit: PageKit): void {
  const loadAuthorize = () => import('./authorize.ts')
  const loadLogout = () => import('./logout.ts')
  app.use('/oauth/*', (c, next) => {
    allowOpener(c)
    return next()
  })
  app.get('/oauth/authorize', async c => (await loadAuthorize()).authorize(kit, c))
  app.post('/oauth/authorize', async c => (await loadAuthorize()).authorizeByForm(kit, c))
  app.get('/oauth/consent', async c => (await loadAuthorize()).continueRequest(kit, c))
  app.post('/oauth/consent', async c => (await loadAuthorize()).decide(kit, c))
  app.get('/oauth/logout', async c => (await loadLogout()).logout(kit, c))
  app.post('/oauth/logout', async c => (await loadLogout()).logoutByForm(kit, c))
}
