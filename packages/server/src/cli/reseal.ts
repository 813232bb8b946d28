import { resealAll } from '../operations/reseal.ts'
import { EXIT_FAILED } from '../operator-error.ts'
import { createSealedStore } from '../storage/reseal.ts'
import type { Command } from './command.ts'

export const commands: Command[] = [
  {
    name: 'keys reseal',
    args: [],
    summary: 'Re-encrypt all stored secrets with the first secret.',
    help: `For rotating KEYWAY_SECRET without downtime: add the new secret after the old one on all nodes, then put it first on
all nodes, run this command, and remove the old secret five minutes later, when all links that it signed have expired.
(With a single node, skip the first step.) Signing keys, session secrets, queued mail and the local inbox are
re-encrypted in small batches. Repeating it is harmless.`,
    async run(context) {
      const { storage, secrets } = await context.services()
      const { resealed, unopened } = await resealAll(createSealedStore(storage.engine), secrets)
      const unopenedNames = unopened.map(({ place, id }) => `${place} ${id}`)
      const lines = [`Re-encrypted ${resealed} values with the secret ${secrets.fingerprint}.`]
      if (unopenedNames.length > 0)
        lines.push(
          `${unopenedNames.length} were encrypted with a secret that is not in KEYWAY_SECRET: ${unopenedNames.join(', ')}.`,
        )
      context.print({ resealed, unopened }, lines.join('\n'))
      return unopenedNames.length > 0 ? EXIT_FAILED : 0
    },
  },
]
