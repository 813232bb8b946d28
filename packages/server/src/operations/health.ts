import { isDiskFull } from '../errors.ts'
import type { HealthCheck } from '../http/http-ports.ts'
import type { Hub } from '../hub/hub.ts'
import type { Services } from '../services.ts'
import { clockProblem } from './clock-sync.ts'

/** /readyz reports mail that has waited for longer than this. */
const MAIL_LATE_SECONDS = 60
const HUB_NOT_FRESH = 'has not reached the database for ten seconds, so it accepts no connections'
const NOT_LISTENING =
  'this node exchanges no events with other nodes; it polls the database every second instead'

/** Runs the checks of /readyz. A failed check makes this node not ready only if it is `required`. */
export async function checkHealth({ storage, clock }: Services, hub: Hub): Promise<HealthCheck[]> {
  const events = storage.eventsHealth()
  const { databaseFresh, writeError } = hub.health()
  const isReachable = await storage.readClock().then(
    () => true,
    () => false,
  )
  const mailQueue = isReachable ? await storage.store.outbox.depth(clock.now()) : null
  const waitSeconds = mailQueue?.oldestDueAt ? Math.round((clock.now() - mailQueue.oldestDueAt) / 1000) : 0
  const clockDetail = clockProblem(clock.remainingOffset, storage.engine.clockReference)
  return [
    {
      name: 'database',
      required: true,
      ok: isReachable,
      detail: isReachable ? undefined : 'cannot be reached',
    },
    {
      name: 'writes',
      required: false,
      ok: !writeError,
      detail: writeError ? detailOfWriteError(writeError) : undefined,
    },
    { name: 'hub', required: true, ok: databaseFresh, detail: databaseFresh ? undefined : HUB_NOT_FRESH },
    {
      name: 'events',
      required: false,
      ok: events.listening,
      detail: events.listening ? undefined : NOT_LISTENING,
    },
    {
      name: 'mail',
      required: false,
      ok: waitSeconds < MAIL_LATE_SECONDS,
      detail: waitSeconds < MAIL_LATE_SECONDS ? undefined : `the oldest mail has waited for ${waitSeconds} s`,
    },
    { name: 'clock', required: false, ok: clockDetail === null, detail: clockDetail ?? undefined },
  ]
}

function detailOfWriteError(error: unknown): string {
  return isDiskFull(error)
    ? "the database's disk is full: reads go on, writes are refused until there is space"
    : 'the database refuses writes; the log says why'
}
