import { journalFiles } from '../backup/journal-reader.ts'
import { toRfc3339 } from '../clock.ts'
import {
  type LeftOut,
  REPLAY_KINDS,
  type ReplayReport,
  replayJournal,
} from '../operations/failover-replay.ts'
import { EXIT_FAILED, OperatorError } from '../operator-error.ts'
import { tellNowAndThen } from './backup-services.ts'
import { type Command, type CommandContext, table } from './command.ts'
import { openEndSentences } from './restore.ts'

export const commands: Command[] = [
  {
    name: 'journal replay',
    args: [],
    options: {
      journal: { value: 'DIR', meaning: 'the journal to read; without it KEYWAY_JOURNAL_DIR' },
      unauthenticated: {
        meaning:
          'accept files of older versions without MACs, and a journal that lacks files: anybody may have changed them',
      },
      'dry-run': { meaning: 'change nothing, and say what would be changed' },
    },
    summary: 'After a failover that lost the last moments, end again what had ended in them.',
    help: `For a database that was put back to an earlier moment while nodes go on serving: an asynchronous standby that was
promoted, a snapshot of a disk. What the journal has and the database lacks stands again: revoked and shortened keys,
suspended and deleted accounts, roles that were taken away, replaced secrets of apps, ended sessions, used links,
withdrawn authorisations, charges and credits. Every node is notified, so that connections of revoked keys close with 4410.

It only ends, charges and remembers. Nothing is given back (an activation, a grant), and what is newer stays as it is.
Keys, accounts and sessions that were made in the lost moments are gone; they are counted under GONE, as are old
sessions and links that were cleared away. Harmless to repeat, and to break off.

Each node writes its own files: put those of all nodes into one folder. A look first, then the replay:
  keyway journal replay --journal DIR --dry-run
  keyway journal replay --journal DIR
Lines carry MACs under KEYWAY_SECRET and are verified before anything is changed. --unauthenticated also reads files of
versions that wrote none, and goes on where a file is missing: whoever could write to them decides what is charged and ended.
The exit status is 1 where the journal cannot be used (then nothing was changed), and where something is left for a
person: a charge that the balance no longer covers, or networks of a key that were changed more than an hour ago.`,
    async run(context) {
      const folder = folderOf(context)
      const dryRun = context.options['dry-run'] === true
      const { openEnds, ...report } = await replay(context, folder, dryRun)
      const ends = openEnds.map(({ file, at }) => ({ file, last_entry_at: toRfc3339(at) }))
      context.print(
        { journal: folder, dry_run: dryRun, ...report, open_ends: ends },
        explain({ ...report, openEnds }, folder, dryRun),
      )
      return report.left.length > 0 ? EXIT_FAILED : 0
    },
  },
]

function folderOf(context: CommandContext): string {
  const folder = (context.options.journal as string | undefined) ?? context.config().journalDir
  if (folder) return folder
  throw new OperatorError(
    'Which journal? KEYWAY_JOURNAL_DIR is not set; give --journal DIR, for example --journal /var/lib/keyway-journal',
  )
}

async function replay(context: CommandContext, folder: string, dryRun: boolean): Promise<ReplayReport> {
  // Before the services are opened: they begin a journal where there is none.
  const files = await journalFiles(folder)
  const services = await context.services()
  const trust = { secrets: services.secrets, unauthenticated: context.options.unauthenticated === true }
  return replayJournal(files, dryRun, { ...services, trust, progress: tellNowAndThen('entries') })
}

function explain(
  { entries, counts, left, missing, openEnds }: ReplayReport,
  folder: string,
  dryRun: boolean,
): string {
  const rows = REPLAY_KINDS.map(kind => {
    const { found, replayed, standing, gone, left: remaining } = counts[kind]
    return [kind.replaceAll('_', ' '), ...[found, replayed, standing, gone, remaining].map(String)]
  })
  const replayed = REPLAY_KINDS.reduce((sum, kind) => sum + counts[kind].replayed, 0)
  return [
    table(['', 'IN THE JOURNAL', dryRun ? 'TO REPLAY' : 'REPLAYED', 'STOOD', 'GONE', 'LEFT'], rows),
    '',
    `${entries} entries in ${folder}. ${conclusion(replayed, dryRun)}`,
    ...left.map(sentence),
    ...(missing ? [`The journal is incomplete: ${missing}. What that had is not replayed.`] : []),
    ...openEndSentences(openEnds),
  ].join('\n')
}

function conclusion(replayed: number, dryRun: boolean): string {
  if (replayed === 0) return 'Nothing had come back.'
  if (dryRun) return `${replayed} had come back. Nothing was changed: leave out --dry-run to end them again.`
  return `${replayed} had come back and stand again as the journal has them, on every node.`
}

function sentence({ id, reason }: LeftOut): string {
  return reason === 'not_covered'
    ? `Left: the ledger entry ${id}, since the balance does not cover it any more. Settle it with the app that charged it.`
    : `Left: the networks of the key ${id}, since nobody can tell whether the journal's or the database's are newer. Look at the key.`
}
