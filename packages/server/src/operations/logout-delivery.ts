import { SECOND } from '../clock.ts'
import type { LogoutNotices } from '../logout-notices/logout-notices.ts'
import { interrupt } from '../outbox/interruption.ts'
import type { Services } from '../services.ts'

/** Interval of polls for notices whose event was lost, and for retries. */
const POLL_INTERVAL = 10 * SECOND
/** Deadline of a shutdown for the calls in progress. */
const DRAIN_MS = 3 * SECOND

export interface LogoutDelivery {
  start(): void
  /**
   * Starts no further call, and resolves when those in progress are finished or, after some seconds, aborted. Notices
   * that were not delivered stay queued.
   */
  stop(): Promise<void>
}

type LogoutDeliveryDeps = Pick<Services, 'storage' | 'clock' | 'jwt' | 'log' | 'config'>

/**
 * Notifies apps of ended sessions when a notice is queued, and at intervals. The code that calls apps is loaded when
 * the first notice is due.
 */
export function createLogoutDelivery(services: LogoutDeliveryDeps): LogoutDelivery {
  const { storage, clock, log } = services
  let notices: Promise<LogoutNotices> | undefined
  let runningDelivery: Promise<void> | undefined
  let isRunRequested = false
  let isStopped = false
  const abort = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let unsubscribe = () => {}

  return {
    start() {
      unsubscribe = storage.events.subscribe(({ type }) => {
        if (type === 'logout_notice.queued' || type === 'events.gap') run()
      })
      timer = setInterval(run, POLL_INTERVAL)
      run()
    },
    async stop() {
      isStopped = true
      clearInterval(timer)
      unsubscribe()
      const drainTimer = setTimeout(() => interrupt(abort), DRAIN_MS)
      await runningDelivery
      clearTimeout(drainTimer)
    },
  }

  /** Delivers due notices; if a delivery is in progress, another one follows it. */
  function run(): void {
    if (runningDelivery) isRunRequested = true
    else if (!isStopped)
      runningDelivery = deliver()
        .catch(error => log.warn({ error: String(error) }, 'logout notices were not delivered yet'))
        .finally(() => {
          runningDelivery = undefined
          if (isRunRequested) {
            isRunRequested = false
            run()
          }
        })
  }

  async function deliver(): Promise<void> {
    if (!(await storage.store.logoutNotices.isAnyDue(clock.now()))) return
    notices ??= load()
    await (await notices).deliver(() => isStopped, abort.signal)
  }

  async function load(): Promise<LogoutNotices> {
    const [{ createLogoutNotices }, { createOutgoing }] = await Promise.all([
      import('../logout-notices/logout-notices.ts'),
      import('../outgoing/outgoing.ts'),
    ])
    const { config } = services
    const call = createOutgoing(config.webhookPrivateNetworks)
    return createLogoutNotices({ ...services, publicUrl: config.publicUrl, call })
  }
}
