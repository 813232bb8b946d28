import { createHash } from 'node:crypto'
import type { PageContext, PageKit } from './kit.ts'
import type { Send } from './streams.ts'

/** A hash of the state that a part of a page shows: short enough for a URL and an event's id. */
export function stateHash(state: string): string {
  return createHash('sha256').update(state).digest('base64url').slice(0, 16)
}

/**
 * Server-sent events for as long as the session lives, then `ended`. `update` is called once a second with the hash of
 * the state that the page shows. If the state has changed, it sends the new one, with its hash as the event's id. It
 * returns the current hash. So a browser that connects again gets an update only if something changed meanwhile.
 */
export function streamToSignedIn(
  kit: PageKit,
  c: PageContext,
  update: (send: Send, shownHash: string) => Promise<string>,
): Response {
  const signedIn = c.get('signedIn')
  if (!signedIn) return c.body('event: ended\ndata: yes\n\n', 200, { 'Content-Type': 'text/event-stream' })
  const cookie = kit.cookies.session(c) ?? ''
  let shownHash = c.req.header('last-event-id') ?? c.req.query('seen') ?? ''
  return kit.streams.serve(c, signedIn.user.id, async send => {
    if (!(await kit.sessions.authenticateCookie(cookie))) {
      await send('ended', 'yes')
      return false
    }
    shownHash = await update(send, shownHash)
    return true
  })
}
