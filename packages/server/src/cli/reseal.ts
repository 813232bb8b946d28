import { resealAll } from '../operations/reseal.ts'
import { EXIT_FAILED } from '../operator-error.ts'
import { createSealedStore } from '../storage/reseal.ts'
import type { Command } from './command.ts'

export const commands: Command[] = [
  {
    name: 'keys reseal',
    args: [],
    summary: 'Rewrap everything that is sealed under the first secret.',
    help: `For changing KEYWAY_SECRET while serving: list the new secret behind the old one on all nodes, then put it first on all,
run this, and take the old one away five minutes later, when no link that it vouched for is alive. (A single node
needs no first step.) Signing keys, session secrets, queued mail and the local inbox are rewrapped in small steps.
Harmless to repeat.`,
    async run(context) {
      const { storage, secrets } = await context.services()
      const { resealed, unopened } = await resealAll(createSealedStore(storage.engine), secrets)
      const lost = unopened.map(({ place, id }) => `${place} ${id}`)
      const lines = [`Rewrapped ${resealed} values under the secret ${secrets.fingerprint}.`]
      if (lost.length > 0)
        lines.push(`${lost.length} were sealed by a secret that is not in KEYWAY_SECRET: ${lost.join(', ')}.`)
      context.print({ resealed, unopened }, lines.join('\n'))
      return lost.length > 0 ? EXIT_FAILED : 0
    },
  },
]
