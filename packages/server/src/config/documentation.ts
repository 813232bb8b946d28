import { type Setting, settings } from './settings.ts'

/** docs/configuration.md, whole. */
export function configurationDocument(): string {
  const rows = Object.entries<Setting<unknown>>(settings).map(([name, setting]) => {
    const names = [
      name,
      ...(setting.secret ? [`${name}_FILE`] : []),
      ...(setting.alias ? [setting.alias] : []),
    ]
    const standard = setting.defaultMeaning ?? `\`${setting.default}\``
    return `| ${names.map(each => `\`${each}\``).join(', ')} | ${standard} | ${setting.meaning} | \`${setting.example}\` |`
  })
  return `${INTRODUCTION}\n\n| Variable | Default | Meaning | Example |\n|---|---|---|---|\n${rows.join('\n')}\n`
}

const INTRODUCTION = `# Configuration

<!-- Made by \`npm run docs\` from packages/server/src/config/settings.ts. Change it there. -->

All settings are environment variables. None is needed to begin with.

- They are checked together at start. Every mistake is listed in one message, each with an example, and the
  process exits with status 78 before it listens. \`npx keyway check-config\` does only the checking.
- A variable that begins with \`KEYWAY_\` and is not in this table is a mistake too: a mistyped name would
  silently leave a default in force. An empty variable counts as not set.
- What carries a secret can come from a file instead: \`NAME_FILE\` names it. The text of a secret is never
  repeated in a message.
- With SQLite and no \`KEYWAY_SECRET\`, a secret is made once in \`<data dir>/secret\` (mode 0600). Back it up apart
  from the database. When it is lost while the database is there, the service says so and does not make another.`
