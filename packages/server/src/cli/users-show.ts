import { type Command, table } from './command.ts'
import { keyJson, mailJson, sessionJson, userJson } from './user-json.ts'

const SHOWN = 10

export const commands: Command[] = [
  {
    name: 'users show',
    args: ['WHO'],
    summary: 'Show an account: its keys, sessions and last mails.',
    help: `WHO is an id or an e-mail address. The first question of every support call, "I got no mail", is answered by
the last mails with their state; no link and no code is shown.`,
    async run(context) {
      const { storage, users, apiKeys, sessions, clock } = await context.services()
      const user = await users.find(context.args[0]!)
      const page = { limit: SHOWN, after: null }
      const keys = (await apiKeys.list(user.id, null, page)).rows.map(key => keyJson(key, clock.now()))
      const live = (await sessions.list(user.id, page)).rows.map(sessionJson)
      const mails = user.email ? (await storage.store.outbox.recentFor(user.email, SHOWN)).map(mailJson) : []
      const shown = userJson(user)
      const text = [
        table(
          ['USER', ''],
          Object.entries(shown).map(([name, value]) => [`  ${name}`, String(value ?? '-')]),
        ),
        table(
          ['KEYS', '', '', ''],
          keys.map(key => [`  ${key.key_prefix}…`, key.status, key.name ?? '-', key.id]),
        ),
        table(
          ['SESSIONS', '', ''],
          live.map(session => [`  ${session.last_used_at}`, session.network, session.client ?? '-']),
        ),
        table(
          ['MAILS', '', '', ''],
          mails.map(mail => [`  ${mail.created_at}`, mail.kind, mail.state, mail.last_error ?? '']),
        ),
      ].join('\n')
      context.print({ user: shown, keys, sessions: live, mails }, text)
      return 0
    },
  },
]
