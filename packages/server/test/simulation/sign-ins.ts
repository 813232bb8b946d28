import { caller } from '../support/services.ts'
import { refusalOf } from './calls.ts'
import type { Person } from './person.ts'
import { SessionHistory } from './session-history.ts'

const MAIL_WAIT_MS = 500
const MAX_MAIL_WAITS = 20

/**
 * Requests a link, reads its mail and verifies it, from up to three devices at once, and again after a lost answer.
 * Returns null if the request is refused by a limit, no mail arrives, or no device gets a session.
 */
export async function signIn(person: Person): Promise<SessionHistory | null> {
  const { world, email } = person
  const tokensBefore = new Set(world.mail.tokensTo(email))
  const sendOutcome = await person
    .request('send', ({ magicLinks }) => magicLinks.send({ email, appId: 'console' }, caller()))
    .then(() => 'sent', refusalOf)
  if (sendOutcome === 'rate_limited') return null
  let token: string | undefined
  for (let waits = 0; waits < MAX_MAIL_WAITS && !token; waits++) {
    await person.pause(MAIL_WAIT_MS)
    token = world.mail.tokensTo(email).find(each => !tokensBefore.has(each))
  }
  return token === undefined ? null : verify(person, token)
}

async function verify(person: Person, token: string): Promise<SessionHistory | null> {
  const { world, random, email } = person
  const sessions = new Map<string, SessionHistory>()
  const deviceCount = random.pick([1, 1, 2, 3])
  await Promise.all(
    Array.from({ length: deviceCount }, async (_, at) => {
      for (let attempt = 0; attempt < 3; attempt++) {
        const outcome = await person
          .request('verify', ({ magicLinks }) => magicLinks.verify({ token, email }, 'api', caller()))
          .then(signedIn => ({ signedIn }), refusalOf)
        if (typeof outcome === 'object') {
          const { user, session, tokens } = outcome.signedIn
          world.acknowledged(`session ${session.id}`, 'select 1 from sessions where id = ?', session.id)
          sessions.set(session.id, new SessionHistory(person, user.id, session.id, tokens.refreshToken))
          person.userId ??= user.id
          if (person.userId !== user.id) world.violate(`${email} has two accounts`)
        }
        if (outcome !== 'lost') return
        await person.pause(100 * (at + 1))
      }
    }),
  )
  if (sessions.size > 1) world.violate(`one link opened ${sessions.size} sessions`)
  const [session] = sessions.values()
  return session ?? null
}
