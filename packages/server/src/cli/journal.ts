import { journalFiles } from '../backup/journal-reader.ts'
import { toRfc3339 } from '../clock.ts'
import { replayJournal } from '../operations/failover-replay.ts'
import { REPLAY_KINDS, type ReplayReport, type UnresolvedChange } from '../operations/replay-report.ts'
import { EXIT_FAILED, OperatorError } from '../operator-error.ts'
import { printProgress } from './backup-services.ts'
import { type Command, type CommandContext, table } from './command.ts'
import { openEndSentences } from './restore.ts'

export const commands: Command[] = [
  {
    name: 'journal replay',
    args: [],
    options: {
      journal: { value: 'DIR', meaning: 'the journal to read; KEYWAY_JOURNAL_DIR by default' },
      unauthenticated: {
        meaning:
          'accept files of older versions without MACs, and a journal with missing files: both may have been tampered with',
      },
      'dry-run': { meaning: 'change nothing, and report what would be changed' },
    },
    summary: 'Re-apply revocations and charges that a failover lost.',
    help: `For a database that was reset to an earlier state while nodes keep running: an asynchronous standby that was
promoted, or a disk snapshot. Re-applies changes that the journal has and the database lost: revoked and shortened
keys, suspended and deleted accounts, requests to be deleted and their cancellations, withdrawn roles, replaced secrets of apps, ended sessions, used links, withdrawn
authorisations, charges and credits. Every node is notified, so that connections of revoked keys close with 4410.

Activations and grants are not re-applied, and newer changes are not overwritten. Keys, accounts and sessions that were
created in the lost time are lost; they are counted under GONE, as are old sessions and links that were pruned. It may
be interrupted and repeated.

Each node writes its own files: copy those of all nodes into one folder. Check first, then replay:
  keyway journal replay --journal DIR --dry-run
  keyway journal replay --journal DIR
Lines have MACs under KEYWAY_SECRET, which are verified before anything is changed. --unauthenticated also accepts files
of versions that wrote none, and missing files: then anyone who could write to the folder may have added or removed entries.
The exit status is 1 if the journal cannot be used (nothing is changed), or if entries need a decision: a charge that
the balance no longer covers, or networks of a key that were changed more than an hour ago.`,
    async run(context) {
      const folder = folderOf(context)
      const dryRun = context.options['dry-run'] === true
      const { openEnds, ...report } = await replay(context, folder, dryRun)
      const ends = openEnds.map(({ file, at }) => ({ file, last_entry_at: toRfc3339(at) }))
      context.print(
        { journal: folder, dry_run: dryRun, ...report, open_ends: ends },
        reportText({ ...report, openEnds }, folder, dryRun),
      )
      return report.left.length > 0 ? EXIT_FAILED : 0
    },
  },
]

function folderOf(context: CommandContext): string {
  const folder = (context.options.journal as string | undefined) ?? context.config().journalDir
  if (folder) return folder
  throw new OperatorError(
    'No journal is configured: set KEYWAY_JOURNAL_DIR, or use --journal DIR, for example --journal /var/lib/keyway-journal',
  )
}

async function replay(context: CommandContext, folder: string, dryRun: boolean): Promise<ReplayReport> {
  // Listed before the services are opened, since opening them creates a journal if there is none.
  const files = await journalFiles(folder)
  const services = await context.services()
  const trust = { secrets: services.secrets, unauthenticated: context.options.unauthenticated === true }
  return replayJournal(files, dryRun, { ...services, trust, progress: printProgress('entries') })
}

function reportText(
  { entries, counts, left, missing, openEnds }: ReplayReport,
  folder: string,
  dryRun: boolean,
): string {
  const rows = REPLAY_KINDS.map(kind => {
    const { found, replayed, standing, gone, left: remaining } = counts[kind]
    return [kind.replaceAll('_', ' '), ...[found, replayed, standing, gone, remaining].map(String)]
  })
  const replayedCount = REPLAY_KINDS.reduce((sum, kind) => sum + counts[kind].replayed, 0)
  return [
    table(['', 'IN THE JOURNAL', dryRun ? 'TO REPLAY' : 'REPLAYED', 'PRESENT', 'GONE', 'LEFT'], rows),
    '',
    `${entries} entries in ${folder}. ${conclusion(replayedCount, dryRun)}`,
    ...left.map(unresolvedSentence),
    ...(missing ? [`The journal is incomplete: ${missing}. Its entries are not replayed.`] : []),
    ...openEndSentences(openEnds),
  ].join('\n')
}

function conclusion(replayedCount: number, dryRun: boolean): string {
  if (replayedCount === 0) return 'The database has all of them.'
  if (dryRun)
    return `${replayedCount} are missing in the database. Nothing was changed: omit --dry-run to re-apply them.`
  return `${replayedCount} were missing in the database and are re-applied.`
}

function unresolvedSentence({ id, reason }: UnresolvedChange): string {
  return reason === 'not_covered'
    ? `Left: the ledger entry ${id}, since the balance no longer covers it. Settle it with the app that charged it.`
    : `Left: the networks of the key ${id}, since it is unknown whether those of the journal or of the database are newer. Check the key.`
}
