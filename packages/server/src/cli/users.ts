import type { ApiKey } from '../api-keys/api-key.ts'
import type { ActedBy } from '../audit/audit.ts'
import { OperatorError } from '../operator-error.ts'
import type { Services } from '../services.ts'
import { parseEmailAddress } from '../users/email-address.ts'
import { USER_ROLES, type User } from '../users/user.ts'
import { byOperator, REASON } from './by-operator.ts'
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
  accountCommand(
    'users suspend',
    'Suspend an account.',
    `Its sessions and links end, its keys are refused, its connections close. "users activate" enables the keys again.`,
    (services, user, by) => services.users.suspend(user.id, by),
  ),
  accountCommand(
    'users activate',
    'Lift a suspension.',
    'The keys work again; the sessions stay ended, so the user must sign in again.',
    (services, user, by) => services.users.activate(user.id, by),
  ),
  accountCommand(
    'users delete',
    'Delete an account permanently.',
    `Sessions and keys end; name and address are erased, also from links and counters; queued mail to the address is
cancelled; the ledger is kept. This cannot be undone.`,
    (services, user, by) => services.users.delete(user.id, by),
  ),
  {
    name: 'users set-role',
    args: ['WHO', 'ROLE'],
    summary: 'Set the role of a user.',
    options: { reason: REASON },
    help: `${WHO} ROLE is user, support (reads everything under /v1/admin, changes nothing) or admin. It takes effect at
once, on every node. The last active administrator cannot be removed. Keys of an administrator that have no scopes
gain the rights of the role; the command lists those that gain by it.`,
    async run(context) {
      const role = USER_ROLES.find(each => each === context.args[1])
      if (!role) throw new OperatorError(`ROLE must be user, support or admin, not "${context.args[1]}".`)
      const { users, apiKeys } = await context.services()
      const user = await users.find(context.args[0]!)
      const changedUser = await users.setRole(user.id, role, byOperator(context.options.reason))
      const gainingKeys =
        role === 'admin' && user.role !== 'admin' ? await apiKeys.listAdministrative(user.id) : []
      const keys = gainingKeys.map(({ id, keyPrefix }) => ({ id, key_prefix: keyPrefix }))
      const text = `${changedUser.email ?? changedUser.id} is ${changedUser.role} now.${gainingKeysSentence(gainingKeys)}`
      context.print({ ...userJson(changedUser), gaining_keys: keys }, text)
      return 0
    },
  },
  {
    name: 'users clear-limits',
    args: ['WHO'],
    options: { reason: REASON },
    summary: 'Reset the sign-in limits of an address.',
    help: `Resets the counts of sign-in mails to the address and of wrong codes typed for it. The limits of networks and of
the whole service are not reset. ${WHO} The address need not have an account.`,
    async run(context) {
      const { users, magicLinks } = await context.services()
      const who = context.args[0]!
      const email = parseEmailAddress(who) ?? (await users.find(who)).email
      if (!email) throw new OperatorError('That account is deleted and has no address.')
      await magicLinks.clearLimits(email, byOperator(context.options.reason))
      context.print({ email, cleared: true }, `${email} may request sign-in mail and type codes again.`)
      return 0
    },
  },
]

function accountCommand(
  name: string,
  summary: string,
  help: string,
  act: (services: Services, user: User, by: ActedBy) => Promise<User>,
): Command {
  return {
    name,
    args: ['WHO'],
    options: { reason: REASON },
    summary,
    help: `${help}\n${WHO} Repeating it changes nothing.`,
    async run(context) {
      const services = await context.services()
      const user = await services.users.find(context.args[0]!)
      const changedUser = await act(services, user, byOperator(context.options.reason))
      context.print(userJson(changedUser), `${user.email ?? user.id} is ${changedUser.status} now.`)
      return 0
    },
  }
}

function gainingKeysSentence(keys: readonly ApiKey[]): string {
  if (keys.length === 0) return ''
  return ` Keys that may administer now: ${keys.map(({ keyPrefix, id }) => `${keyPrefix}… (${id})`).join(', ')}.`
}

function limitOf(text: string | boolean | undefined): number {
  const limit = Number(text ?? 50)
  if (!Number.isInteger(limit) || limit < 1 || limit > 100)
    throw new OperatorError('--limit must be a whole number from 1 to 100.')
  return limit
}
