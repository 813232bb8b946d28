import type { App, LiveCredentials } from '../apps/app.ts'
import { toRfc3339 } from '../clock.ts'
import { OperatorError } from '../operator-error.ts'
import { type Command, table } from './command.ts'

export const commands: Command[] = [
  {
    name: 'apps list',
    args: [],
    summary: 'List the registered apps.',
    help: `New accounts authorise the first-party apps to charge them; other apps need an authorisation by the user. An app has
rights over keys and sessions that were created under its id since RIGHTS SINCE; see "keyway apps add --help".`,
    async run(context) {
      const apps = (await (await context.services()).apps.list()).map(appJson)
      const rows = apps.map(app => [
        app.id,
        app.name,
        app.first_party ? 'yes' : 'no',
        app.covers_from ?? 'the beginning',
        app.audience ?? '-',
      ])
      context.print({ data: apps }, table(['ID', 'NAME', 'FIRST PARTY', 'RIGHTS SINCE', 'AUDIENCE'], rows))
      return 0
    },
  },
  {
    name: 'apps add',
    args: ['ID'],
    options: {
      name: { value: 'NAME', meaning: 'what people see', required: true },
      audience: { value: 'URL', meaning: 'the audience of agent tokens for its own services' },
      'verify-url': { value: 'URL', meaning: 'its own page that sign-in links open' },
      adopt: { meaning: 'also give it rights over keys and sessions created under ID before' },
    },
    summary: 'Register an app.',
    help: `ID is 1 to 64 of a-z 0-9 . _ - and cannot be changed. Any user may create keys and sign in under an ID that is not
registered. The app has rights over those only with --adopt, which cannot be added later. Example:
  keyway apps add shop --name "The shop"`,
    async run(context) {
      const { name, audience, 'verify-url': verifyUrl, adopt } = context.options
      const { app, older } = await (await context.services()).apps.register({
        id: context.args[0]!,
        name: String(name),
        audience: addressOf('audience', audience),
        verifyUrl: addressOf('verify-url', verifyUrl),
        adopt: adopt === true,
      })
      const text = `Registered ${app.id}. ${coverageOf(app, older)}Create its secret: keyway apps secret ${app.id}`
      context.print({ ...appJson(app), older }, text)
      return 0
    },
  },
  {
    name: 'apps secret',
    args: ['ID'],
    summary: 'Create a new secret for an app.',
    help: `Prints the secret, once, and nothing else on standard output. The previous secret keeps working, so that the app can
be updated, until another one is created.`,
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
    throw new OperatorError(`--${option} must be an http or https URL.`)
  return String(value)
}

/** A sentence about keys and sessions that exist under the id already, which may reveal a mistyped or squatted id. */
function coverageOf({ coversFrom }: App, { keys, sessions }: LiveCredentials): string {
  if (keys + sessions === 0) return ''
  const older = `${counted(keys, 'key')} and ${counted(sessions, 'session')} that were created under this id before`
  return coversFrom === 0 ? `It has rights over ${older}. ` : `It has no rights over ${older}. `
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

function appJson({ id, name, firstParty, audience, verifyUrl, coversFrom }: App) {
  return {
    id,
    name,
    first_party: firstParty,
    audience,
    verify_url: verifyUrl,
    /** Null: all. */
    covers_from: coversFrom === 0 ? null : toRfc3339(coversFrom),
  }
}
