import type { Finding } from '../administration/finding.ts'
import { verifyAudit } from '../audit/audit-verification.ts'
import { type Config, configWarnings, containerWarnings } from '../config.ts'
import type { HealthCheck } from '../http/http-ports.ts'
import { createMail, type Services } from '../services.ts'
import { checkDataDir, checkProxies, checkPublicUrl, findingOf } from './installation-checks.ts'

/** If this machine's clock differs by more from the service's, times in its log differ noticeably from stored ones. */
const MAX_SKEW_MS = 1000
/** If the oldest mail has waited for longer, the queue counts as stuck. */
const MAIL_LATE_MS = 60_000
/** If the oldest event for an endpoint has waited for longer, the endpoint counts as failing. */
const EVENTS_LATE_MS = 3_600_000
const NO_STANDBYS = { count: 0, isSynchronous: false }

/** Runs every check, as `keyway doctor` reports them. */
export async function examineAll(services: Services): Promise<Finding[]> {
  const { config } = services
  return [
    ...checkSettings(config),
    ...(await checkDataDir(config)),
    await findingOf('database', () => checkDatabase(services)),
    await findingOf('standbys', () => checkStandbys(services)),
    await findingOf('clock', async () => checkClock(services)),
    await findingOf('secrets', () => checkSecrets(services)),
    await findingOf('signing keys', () => checkSigningKeys(services)),
    await findingOf('audit', () => checkAudit(services)),
    await findingOf('mail', () => checkMail(services)),
    await findingOf('webhooks', () => checkWebhooks(services)),
    ...(await checkPublicUrl(services)),
    ...checkProxies(config),
  ]
}

/** Runs only the cheap checks: those of /readyz, under the names that they have there, and a few others. */
export async function examineQuickly(
  services: Services,
  readiness: () => Promise<HealthCheck[]>,
): Promise<Finding[]> {
  const { config } = services
  return [
    ...checkSettings(config),
    ...(await checkDataDir(config)),
    ...(await readiness()).map(({ name, ok, detail }) => ({
      check: name,
      ok,
      detail: detail ?? (name === 'mail' ? describeMail(config) : 'works'),
    })),
    await findingOf('standbys', () => checkStandbys(services)),
    await findingOf('webhooks', () => checkWebhooks(services)),
    ...checkProxies(config),
  ]
}

/** Says where mail goes. Whether a provider accepts mail is known only after a delivery, or from `examineAll`. */
function describeMail({ mail }: Config): string {
  return mail.kind === 'inbox'
    ? 'no mail is sent: all of it goes to the local inbox, until KEYWAY_MAIL_URL names a mail server'
    : `${mail.kind} is used, and no mail waits for long`
}

/** Warnings about container networks are not failures, so that the deployments in `deploy/` pass. */
function checkSettings(config: Config): Finding[] {
  const acceptedWarnings = new Set(containerWarnings(config))
  return configWarnings(config).map(warning => {
    const ok = acceptedWarnings.has(warning)
    return {
      check: 'settings',
      ok,
      detail: ok
        ? `${warning} Not needed if only containers of this service can reach that network.`
        : warning,
    }
  })
}

async function checkDatabase({ storage, config }: Services): Promise<string> {
  const startedAt = performance.now()
  await storage.readClock()
  if ((await storage.engine.hasTimeouts?.()) === false)
    throw new Error(
      'the pooler drops the timeouts of statements, locks and idle transactions, so a stuck statement keeps its connection: set them for the role, see docs/operations.md, "Behind PgBouncer"',
    )
  return `${config.database.engine} answers in ${Math.ceil(performance.now() - startedAt)} ms`
}

async function checkStandbys({ storage, config }: Services): Promise<string> {
  const { count, isSynchronous } = (await storage.engine.standbys?.()) ?? NO_STANDBYS
  if (count > 0 && !isSynchronous)
    throw new Error(
      `replication to the standby is asynchronous: a failover may lose the last transactions, revocations among them. Set synchronous_standby_names, or ${config.journalDir === null ? 'set KEYWAY_JOURNAL_DIR to a folder on another machine' : 'keep KEYWAY_JOURNAL_DIR on another machine'} and run "keyway journal replay" after a failover`,
    )
  return count > 0 ? 'a COMMIT waits for one' : 'none'
}

function checkClock({ clock }: Services): string {
  const skew = Math.abs(clock.skew)
  if (skew > MAX_SKEW_MS)
    throw new Error(
      `this machine and the database differ by ${skew} ms. The service uses the database's clock, but logs use this machine's: start a time service (chrony, systemd-timesyncd) on both`,
    )
  return 'this machine agrees with the database'
}

async function checkSecrets({ storage, secrets }: Services): Promise<string> {
  const countBySecret = await storage.store.instance.countBySecret()
  const unknownSecrets = [...countBySecret].filter(([id]) => !secrets.ids.includes(id))
  if (unknownSecrets.length > 0) {
    const count = unknownSecrets.reduce((sum, [, each]) => sum + each, 0)
    throw new Error(
      `${count} stored values were encrypted with a secret that KEYWAY_SECRET does not list (${unknownSecrets.map(([id]) => id).join(', ')}): add that secret after the first`,
    )
  }
  const olderSecrets = [...countBySecret].filter(([id]) => id !== secrets.fingerprint)
  const resealCount = olderSecrets.reduce((sum, [, each]) => sum + each, 0)
  if (resealCount > 0)
    throw new Error(
      `${resealCount} stored values are still encrypted with an older secret: run "keyway keys reseal" before you remove it from KEYWAY_SECRET`,
    )
  const secretCount = secrets.ids.length
  return secretCount > 1
    ? `all stored values are encrypted with the first of ${secretCount}; the others can be removed from KEYWAY_SECRET`
    : 'all stored values can be decrypted'
}

async function checkSigningKeys({ signingKeys }: Services): Promise<string> {
  await signingKeys.load()
  return `${signingKeys.jwks().keys.length} published`
}

async function checkAudit(services: Services): Promise<string> {
  const verification = await verifyAudit(services)
  if ('mistake' in verification)
    throw new Error(
      `${verification.mistake}. Somebody changed the database directly, or it was restored from a backup: compare "keyway audit" with the lines "audit head" of the log`,
    )
  const { rows, isSealed } = verification
  return rows === 0 ? 'no rows' : `${rows} rows without a gap${isSealed ? '' : ', the last not sealed yet'}`
}

async function checkMail(services: Services): Promise<string> {
  const { config, storage, clock } = services
  const { mailer } = await createMail(services)
  await mailer
    .check()
    .catch((error: Error) => {
      throw new Error(`${config.mail.kind} refused the login: ${error.message}. See KEYWAY_MAIL_URL`)
    })
    .finally(() => mailer.close())
  const { queued, oldestDueAt } = await storage.store.outbox.depth(clock.now())
  const waitMs = oldestDueAt === null ? 0 : clock.now() - oldestDueAt
  if (waitMs > MAIL_LATE_MS)
    throw new Error(
      `${config.mail.kind} answers, but the oldest of ${queued} queued mails has waited for ${Math.round(waitMs / 1000)} s: check that the service runs, and its log for failed deliveries`,
    )
  const reportsBounces = config.mail.kind === 'resend' || config.mail.kind === 'postmark'
  const advice =
    reportsBounces && !config.mailHookSecret
      ? '; bounces are not reported without KEYWAY_MAIL_HOOK_SECRET'
      : ''
  if (config.mail.kind === 'inbox') return `${describeMail(config)}; ${queued} queued`
  return `${config.mail.kind} answers, ${queued} queued${advice}`
}

async function checkWebhooks(services: Services): Promise<string> {
  const webhooks = await (await services.webhooks()).list()
  const now = services.clock.now()
  for (const { id, url, disabledBy, waiting, oldestWaitingAt, disabledAt } of webhooks) {
    // Leaves out the path of the URL, which may contain a secret.
    const endpoint = `${new URL(url).host} (${id})`
    if (disabledBy === 'failures')
      throw new Error(
        `${endpoint} accepted nothing for three days and was disabled: mend it, then enable it on /admin/webhooks`,
      )
    if (disabledAt === null && oldestWaitingAt !== null && now - oldestWaitingAt > EVENTS_LATE_MS)
      throw new Error(
        `${waiting} events wait for ${endpoint}, the oldest for ${Math.round((now - oldestWaitingAt) / 60_000)} minutes: /admin/webhooks shows why`,
      )
  }
  if (webhooks.length === 0) return 'none'
  const waitingCount = webhooks.reduce((sum, each) => sum + each.waiting, 0)
  return `${webhooks.length}, ${waitingCount} events waiting`
}
