import { bucketNamesOf } from '../magic-links/send-limits.ts'
import { codeMailbox } from '../magic-links/typed-code.ts'
import { OperatorError } from '../operator-error.ts'
import type { Services } from '../services.ts'
import { parseEmailAddress } from '../users/email-address.ts'
import type { User, UserRole } from '../users/user.ts'
import { type Command, table } from './command.ts'
import { userJson } from './user-json.ts'

const WHO = "WHO is the user's id or e-mail address, for example ada@example.com."

export const commands: Command[] = [
  {
    name: 'users list',
    args: [],
    options: { limit: { value: 'N', meaning: 'how many at most, 1 to 100 (50)' } },
    summary: 'List the newest users.',
    help: 'Newest first.',
    async run(context) {
      const { storage } = await context.services()
      const { rows } = await storage.store.users.list({ limit: limitOf(context.options.limit), after: null })
      const text = table(
        ['ID', 'E-MAIL', 'ROLE', 'STATUS', 'CREATED'],
        rows.map(userJson).map(user => [user.id, user.email ?? '-', user.role, user.status, user.created_at]),
      )
      context.print({ data: rows.map(userJson) }, text)
      return 0
    },
  },
  change(
    'users suspend',
    'Suspend an account.',
    `Its sessions and links end, its keys are refused, its connections close. "users activate" enables the keys again.`,
    (services, user) => services.users.suspend(user.id),
  ),
  change(
    'users activate',
    'Lift a suspension.',
    'The keys work again; the sessions stay ended, so the user must sign in again.',
    (services, user) => services.users.activate(user.id),
  ),
  change(
    'users delete',
    'Delete an account permanently.',
    `Sessions and keys end; name and address are erased, also from links and counters; queued mail to the address is
cancelled; the ledger is kept. This cannot be undone.`,
    (services, user) => services.users.delete(user.id),
  ),
  {
    name: 'users set-role',
    args: ['WHO', 'ROLE'],
    summary: 'Set the role of a user.',
    help: `${WHO} ROLE is user or admin. The role is a claim of access tokens, for other services; it gives no rights here.`,
    async run(context) {
      const role = context.args[1]!
      if (role !== 'user' && role !== 'admin')
        throw new OperatorError(`ROLE must be user or admin, not "${role}".`)
      const { users } = await context.services()
      const user = await users.find(context.args[0]!)
      const changed = await users.setRole(user.id, role satisfies UserRole)
      context.print(userJson(changed), `${changed.email ?? changed.id} is ${changed.role} now.`)
      return 0
    },
  },
  {
    name: 'users clear-limits',
    args: ['WHO'],
    summary: 'Reset the sign-in limits of an address.',
    help: `Resets the counts of sign-in mails to the address and of wrong codes typed for it. The limits of networks and of
the whole service are not reset. ${WHO} The address need not have an account.`,
    async run(context) {
      const { storage, users, secrets } = await context.services()
      const who = context.args[0]!
      const email = parseEmailAddress(who) ?? (await users.find(who)).email
      if (!email) throw new OperatorError('That account is deleted and has no address.')
      await storage.transaction(async tx => {
        for (const bucket of bucketNamesOf(email)) await tx.magicLinks.clearSends(bucket)
        await tx.wrongCodes.clearMailbox(codeMailbox(secrets, email))
      })
      context.print({ email, cleared: true }, `${email} may request sign-in mail and type codes again.`)
      return 0
    },
  },
]

function change(
  name: string,
  summary: string,
  help: string,
  verb: (services: Services, user: User) => Promise<User>,
): Command {
  return {
    name,
    args: ['WHO'],
    summary,
    help: `${help}\n${WHO} Repeating it changes nothing.`,
    async run(context) {
      const services = await context.services()
      const user = await services.users.find(context.args[0]!)
      const changed = await verb(services, user)
      context.print(userJson(changed), `${user.email ?? user.id} is ${changed.status} now.`)
      return 0
    },
  }
}

function limitOf(text: string | boolean | undefined): number {
  const limit = Number(text ?? 50)
  if (!Number.isInteger(limit) || limit < 1 || limit > 100)
    throw new OperatorError('--limit must be a whole number from 1 to 100.')
  return limit
}
