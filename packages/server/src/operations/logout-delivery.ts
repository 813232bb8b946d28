import { SECOND } from '../clock.ts'
import type { LogoutNotices } from '../logout-notices/logout-notices.ts'
import type { Services } from '../services.ts'

/** Poll interval for notices whose event was lost, and for retries. */
const POLL_INTERVAL = 10 * SECOND

export interface LogoutDelivery {
  start(): void
  /** Resolves when no call to an app is in progress. */
  stop(): Promise<void>
}

type Needs = Pick<Services, 'storage' | 'clock' | 'jwt' | 'log' | 'config'>

/**
 * Notifies apps of ended sessions: at once on the event, and at intervals. The code is loaded with the first notice.
 */
export function createLogoutDelivery(services: Needs): LogoutDelivery {
  const { storage, clock, log } = services
  let notices: Promise<LogoutNotices> | undefined
  let running: Promise<void> | undefined
  let isWantedAgain = false
  let isStopped = false
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
      await running
    },
  }

  /** Never runs concurrently with itself. */
  function run(): void {
    if (running) isWantedAgain = true
    else if (!isStopped)
      running = deliver()
        .catch(error => log.warn({ error: String(error) }, 'logout notices were not delivered yet'))
        .finally(() => {
          running = undefined
          if (isWantedAgain) {
            isWantedAgain = false
            run()
          }
        })
  }

  async function deliver(): Promise<void> {
    if (!(await storage.store.logoutNotices.isAnyDue(clock.now()))) return
    notices ??= load()
    await (await notices).deliver()
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
