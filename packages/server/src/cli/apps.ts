import type { App, LiveCredentials } from '../apps/app.ts'
import type { RegisteredApp } from '../apps/apps.ts'
import { appObject } from '../http/app-object.ts'
import { UsageError } from '../operator-error.ts'
import { APP_OPTIONS, settingsOf } from './app-options.ts'
import { type Command, table } from './command.ts'

export const commands: Command[] = [
  {
    name: 'apps list',
    args: [],
    summary: 'List the registered apps.',
    help: `New accounts authorise the first-party apps to charge them; other apps need an authorisation by the user. An app has
rights over keys and sessions that were created under its id since RIGHTS SINCE; see "keyway apps add --help".`,
    async run(context) {
      const apps = (await (await context.services()).apps.list()).map(appObject)
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
    name: 'apps show',
    args: ['ID'],
    summary: 'Show an app with all its settings.',
    help: 'The secret is not shown: only its hash is stored. "keyway apps secret ID" creates a new one.',
    async run(context) {
      const app = appObject(await (await context.services()).apps.find(context.args[0]!))
      context.print(app, table(['SETTING', 'VALUE'], Object.entries(app).map(settingRow)))
      return 0
    },
  },
  {
    name: 'apps add',
    args: ['ID'],
    options: {
      name: { value: 'NAME', meaning: 'what people see', required: true },
      ...APP_OPTIONS,
      adopt: { meaning: 'also give it rights over keys and sessions created under ID before' },
    },
    summary: 'Register an app, which is an OAuth client.',
    help: `Prints the four values that an OAuth or OpenID client needs; the secret only here. ID is 1 to 64 of a-z 0-9 . _ - and
cannot be changed. Any user may create keys and sign in under an ID that is not registered. The app has rights over those
only with --adopt, which cannot be added later. Redirect URIs match exactly, except for the port of loopback ones. Example:
  keyway apps add shop --name "The shop" --redirect-uri https://shop.example.com/callback`,
    async run(context) {
      const { apps } = await context.services()
      const { name, adopt } = context.options
      const settings = settingsOf(context)
      const registration = await apps.register({
        ...settings,
        id: context.args[0]!,
        name: String(name),
        adopt: adopt === true,
      })
      const configuration = clientConfiguration(registration, context.config().publicUrl)
      const lines = Object.entries(configuration).map(([label, value]) => `${label}: ${value ?? '(none)'}`)
      const text = [`Registered ${registration.app.id}.${coverageSentence(registration)}`, ...lines].join(
        '\n',
      )
      context.print({ ...appObject(registration.app), older: registration.older, ...configuration }, text)
      return 0
    },
  },
  {
    name: 'apps set',
    args: ['ID'],
    options: { name: { value: 'NAME', meaning: 'what people see' }, ...APP_OPTIONS },
    summary: 'Change settings of an app.',
    help: `Only the given settings change. The values of a repeatable option replace all its former ones; an empty value clears a
setting, and --no-… unsets a flag. A client that becomes public loses its secrets. A running server applies it within a
second. Example:
  keyway apps set shop --redirect-uri https://shop.example.com/callback --no-trusted`,
    async run(context) {
      const settings = settingsOf(context)
      if (Object.keys(settings).length === 0)
        throw new UsageError('Name at least one setting to change. See: keyway apps set --help')
      const app = await (await context.services()).apps.change(context.args[0]!, settings)
      context.print(appObject(app), `Changed ${app.id}: ${Object.keys(settings).length} settings.`)
      return 0
    },
  },
  {
    name: 'apps remove',
    args: ['ID'],
    summary: 'Remove an app, and end all that was issued to it.',
    help: `Its secrets, tokens, sessions, authorisations to charge and consents end on every node. Keys and sessions that people created under
ID themselves stay theirs; "keyway keys revoke" and "keyway users suspend" end those. First-party apps cannot be removed.
If it is interrupted, repeat it.`,
    async run(context) {
      const id = context.args[0]!
      const endedCounts = await (await context.services()).apps.remove(id)
      const { sessions, authorizations, consents } = endedCounts
      const text = `Removed ${id}. Ended ${countText(sessions, 'session')}, ${countText(authorizations, 'authorisation')} to charge and ${countText(consents, 'consent')}.`
      context.print(
        { id, removed: true, ended: { sessions, charge_authorizations: authorizations, consents } },
        text,
      )
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
      const newSecret = await (await context.services()).apps.newSecret(id)
      context.print({ id, secret_id: newSecret.id, secret: newSecret.secret }, newSecret.secret)
      return 0
    },
  },
]

/** The values that an OAuth client must be configured with. */
function clientConfiguration({ app, secret }: RegisteredApp, issuer: string) {
  return {
    issuer,
    client_id: app.id,
    client_secret: secret,
    discovery_url: `${issuer}/.well-known/openid-configuration`,
  }
}

/**
 * Says how many keys and sessions were created under the app's id before its registration, and whether it has rights
 * over them: an unexpected number suggests that the id is mistyped or squatted.
 */
function coverageSentence({
  app: { coversFrom },
  older: { keys, sessions },
}: {
  app: App
  older: LiveCredentials
}): string {
  if (keys + sessions === 0) return ''
  const counts = `${countText(keys, 'key')} and ${countText(sessions, 'session')} that were created under this id before`
  return coversFrom === 0 ? ` It has rights over ${counts}.` : ` It has no rights over ${counts}.`
}

function countText(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

function settingRow([name, value]: [string, unknown]): [string, string] {
  if (Array.isArray(value)) return [name, value.join(' ') || '-']
  return [name, value === null ? '-' : String(value)]
}
