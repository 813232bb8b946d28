import { toRfc3339 } from '../clock.ts'
import type { Command } from './command.ts'
import { keyJson } from './user-json.ts'

export const commands: Command[] = [
  {
    name: 'keys revoke',
    args: ['KEY_ID'],
    summary: 'Revoke an API key, whoever owns it.',
    help: `Permanent. No exchange succeeds any more, and open connections of the key close with 4410, also on a server that
is running. KEY_ID is the id, not the key; "users show" lists them.`,
    async run(context) {
      const { apiKeys, clock } = await context.services()
      const key = await apiKeys.revokeById(context.args[0]!)
      context.print(keyJson(key, clock.now()), `Revoked ${key.keyPrefix}… (${key.id}).`)
      return 0
    },
  },
  {
    name: 'keys rotate-signing',
    args: [],
    summary: 'Make a new key that signs tokens.',
    help: `The new key is published at once and signs only when every verifier can know it; the old one is published until
nothing that it signed is alive. Nobody is signed out.`,
    async run(context) {
      const { signingKeys } = await context.services()
      const { kid, signsFrom } = await signingKeys.rotate()
      const at = toRfc3339(signsFrom)
      context.print({ kid, signs_from: at }, `The signing key ${kid} is published, and signs from ${at}.`)
      return 0
    },
  },
]
