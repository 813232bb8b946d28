import { type Setting, settings } from './settings.ts'

/** The content of docs/configuration.md. */
export function configurationDocument(): string {
  const rows = Object.entries<Setting<unknown>>(settings).map(([name, setting]) => {
    const names = [
      name,
      ...(setting.secret ? [`${name}_FILE`] : []),
      ...(setting.alias ? [setting.alias] : []),
    ]
    const defaultText = setting.defaultMeaning ?? `\`${setting.default}\``
    return `| ${names.map(variable => `\`${variable}\``).join(', ')} | ${defaultText} | ${setting.meaning} | \`${setting.example}\` |`
  })
  return `${INTRODUCTION}\n\n| Variable | Default | Meaning | Example |\n|---|---|---|---|\n${rows.join('\n')}\n`
}

const INTRODUCTION = `# Configuration

<!-- Made by \`npm run docs\` from packages/server/src/config/settings.ts. Change it there. -->

All settings are environment variables. All are optional for a first start.

- They are checked together at start. All mistakes are listed in one message, each with an example, and the
  process exits with status 78 before it listens. \`npx keyway check-config\` only checks them.
- A variable that begins with \`KEYWAY_\` and is not in this table is a mistake too: a mistyped name would
  silently leave a default in force. An empty variable counts as not set.
- A secret can be read from a file instead, which \`NAME_FILE\` names. Messages never contain the text of a secret.
- With SQLite and no \`KEYWAY_SECRET\`, a secret is generated once in \`<data dir>/secret\` (mode 0600). Back it up apart
  from the database. If it is missing while the database exists, the service refuses to start.`
