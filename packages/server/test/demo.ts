/**
 * The main flow, as a new user meets it: `npm run demo [-- --smtp] [-- --postgres] [-- --url URL]`.
 *
 * Starts the service with its default settings in an empty folder (or uses the one at --url, which must be
 * local and have the inbox), and ends with status 1 at the first step that fails.
 */
import { randomBytes } from 'node:crypto'
import { parseArgs } from 'node:util'
import { freePort } from './support/free-port.ts'
import { closeCode, createJourney } from './support/journey.ts'
import { createMailbox } from './support/mailbox.ts'
import { startCluster } from './support/postgres.ts'
import { serve, temporaryFolder } from './support/serve.ts'

const { values: flags } = parseArgs({
  options: { smtp: { type: 'boolean' }, postgres: { type: 'boolean' }, url: { type: 'string' } },
})
const cleanUps: (() => unknown)[] = []

try {
  await demonstrate()
} catch (error) {
  console.error(`✗ ${(error as Error).message}`)
  process.exitCode = 1
} finally {
  for (const each of cleanUps.reverse()) await each()
}
process.exit()

async function demonstrate(): Promise<void> {
  const mailbox = flags.smtp ? await createMailbox() : null
  if (mailbox) cleanUps.push(mailbox.close)
  const url =
    flags.url ??
    (await step(
      'start the service',
      () => start(mailbox?.url),
      running => running,
    ))
  const journey = createJourney(url)
  const email = `ada-${randomBytes(4).toString('hex')}@example.com`

  await step(
    'ask for a sign-in link',
    () => journey.sendLink(email),
    () => email,
  )
  const token = await step(
    'read the mail',
    () => (mailbox ? mailbox.readToken(email) : journey.readToken(email)),
    () => (mailbox ? 'from a real SMTP server' : 'from the local inbox'),
  )
  const signIn = await step(
    'verify the link',
    () => journey.verify(email, token),
    answer => `new user: ${answer.is_new_user}`,
  )
  expect(signIn.is_new_user, 'the address is new')
  const me = await step(
    'look at the account',
    () => journey.me(signIn.access_token),
    ({ balance, subscription }) => `$${balance.amount}, plan ${subscription.plan}`,
  )
  expect(
    me.balance.amount === '2.00' && me.subscription.plan === 'free',
    'the account has $2.00 and the free plan',
  )
  const key = await step(
    'create an API key',
    () => journey.createKey(signIn.access_token, 'demo'),
    answer => `${answer.key.slice(0, 12)}…`,
  )
  const agentToken = await step(
    'exchange it for an agent token',
    () => journey.exchange(key.key),
    () => '15 minutes',
  )
  const socket = await step(
    'connect to the hub',
    () => journey.connect(agentToken),
    () => 'ready',
  )
  const closed = closeCode(socket)
  await step('revoke the key', () => journey.revoke(signIn.access_token, key.id))
  const code = await step('see the connection close', () => closed, String)
  expect(code === 4410, 'the connection closes with 4410')
}

async function start(mailUrl: string | undefined): Promise<string> {
  const folder = temporaryFolder()
  cleanUps.push(folder.remove)
  const settings: Record<string, string> = {
    KEYWAY_DATA_DIR: `${folder.path}/data`,
    KEYWAY_PORT: String(await freePort()),
  }
  if (mailUrl)
    Object.assign(settings, { KEYWAY_MAIL_URL: mailUrl, KEYWAY_SUPPORT_EMAIL: 'support@example.com' })
  if (flags.postgres) {
    const cluster = await startCluster()
    cleanUps.push(cluster.stop)
    settings.KEYWAY_DATABASE_URL = cluster.url
    settings.KEYWAY_SECRET = randomBytes(32).toString('base64')
  }
  const server = await serve(settings)
  cleanUps.push(() => server.end('SIGTERM'))
  return server.url
}

async function step<Result>(
  name: string,
  work: () => Promise<Result>,
  describe?: (result: Result) => string,
): Promise<Result> {
  const startedAt = performance.now()
  const result = await work().catch(error => {
    throw new Error(`${name}: ${error.message}`)
  })
  const durationText = (performance.now() - startedAt).toFixed(1).padStart(7)
  console.log(`✓ ${durationText} ms  ${name}${describe ? `: ${describe(result)}` : ''}`)
  return result
}

function expect(condition: boolean, promise: string): void {
  if (!condition) throw new Error(`expected, but not true: ${promise}`)
}
