import type { App } from '../apps/app.ts'
import { type Command, CommandFailed, table } from './command.ts'

export const commands: Command[] = [
  {
    name: 'apps list',
    args: [],
    summary: 'List the registered apps.',
    help: 'New accounts authorise the first-party apps to charge them; every other app asks.',
    async run(context) {
      const apps = (await (await context.services()).apps.list()).map(appJson)
      const rows = apps.map(app => [app.id, app.name, app.first_party ? 'yes' : 'no', app.audience ?? '-'])
      context.print({ data: apps }, table(['ID', 'NAME', 'FIRST PARTY', 'AUDIENCE'], rows))
      return 0
    },
  },
  {
    name: 'apps add',
    args: ['ID'],
    options: {
      name: { value: 'NAME', meaning: 'what people see', required: true },
      audience: { value: 'URL', meaning: 'what agent tokens for its own services are issued to' },
      'verify-url': { value: 'URL', meaning: 'its own page that sign-in links open' },
    },
    summary: 'Register an app.',
    help: 'ID is 1 to 64 of a-z 0-9 . _ - and never changes. Example:\n  keyway apps add shop --name "The shop"',
    async run(context) {
      const { name, audience, 'verify-url': verifyUrl } = context.options
      const app = await (await context.services()).apps.register({
        id: context.args[0]!,
        name: String(name),
        audience: addressOf('audience', audience),
        verifyUrl: addressOf('verify-url', verifyUrl),
      })
      context.print(appJson(app), `Registered ${app.id}. Its secret: keyway apps secret ${app.id}`)
      return 0
    },
  },
  {
    name: 'apps secret',
    args: ['ID'],
    summary: 'Make a new secret for an app.',
    help: `The secret stands alone on standard output, once. The one before it keeps working, so that the app can be moved
over; making another one ends it.`,
    async run(context) {
      const id = context.args[0]!
      const secret = await (await context.services()).apps.newSecret(id)
      context.print({ id, secret }, secret)
      return 0
    },
  },
]

function addressOf(option: string, value: string | boolean | undefined): string | null {
  if (value === undefined) return null
  const url = URL.canParse(String(value)) ? new URL(String(value)) : null
  if (!url || !/^https?:$/.test(url.protocol))
    throw new CommandFailed(`--${option} must be an http or https address.`)
  return String(value)
}

function appJson({ id, name, firstParty, audience, verifyUrl }: App) {
  return { id, name, first_party: firstParty, audience, verify_url: verifyUrl }
}
