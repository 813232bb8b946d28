import { z } from 'zod'
import type { ListedMail, NodeStatus } from '../../../administration/administration.ts'
import { toRfc3339, toRfc3339OrNull } from '../../../clock.ts'
import { connectionObject } from '../../../hub/connection-object.ts'
import type { PresenceRow } from '../../../hub/presence-store.ts'
import type { Suppression } from '../../../outbox/suppression.ts'
import type { Session } from '../../../sessions/session.ts'
import { EXAMPLE_IDS } from '../../example-ids.ts'
import * as answers from '../../openapi-schemas.ts'

/**
 * What administrators see: schemas, examples, and JSON objects. Fields are listed explicitly, so that no column is
 * exposed by accident. The objects contain no content of mails, and audit events contain no e-mail addresses.
 */

const id = z.uuid()
const instant = z.iso.datetime({ precision: 3 })
const nullable = <Schema extends z.ZodType>(schema: Schema) => z.union([schema, z.null()])
const EXAMPLE_AT = '2026-11-20T19:22:00.000Z'

export const person = answers.user
  .extend({
    balance: z.strictObject({ amount: z.string(), currency: z.string() }),
    external_id: nullable(z.string()),
    deletes_at: nullable(instant),
  })
  .meta({ id: 'Person' })
export const personExample = {
  ...answers.userExample,
  balance: { amount: '2.00', currency: 'USD' },
  external_id: null,
  deletes_at: null,
}

export const changedPerson = answers.user
  .extend({ gaining_keys: z.array(z.strictObject({ id, key_prefix: z.string() })).optional() })
  .meta({ id: 'ChangedPerson' })
export const changedPersonExample = { ...answers.userExample, name: 'Ada' }

export const session = z
  .strictObject({
    id,
    app_id: z.string(),
    kind: z.enum(['api', 'page', 'app']),
    created_at: instant,
    last_used_at: instant,
    expires_at: instant,
    client: nullable(z.string()),
    network: z.string(),
  })
  .meta({ id: 'SessionOfUser' })
export const sessionExample = {
  id: EXAMPLE_IDS.session,
  app_id: 'console',
  kind: 'page',
  created_at: EXAMPLE_AT,
  last_used_at: EXAMPLE_AT,
  expires_at: EXAMPLE_AT,
  client: 'Mozilla/5.0',
  network: '203.0.113.7',
}
export function sessionObject(row: Session): z.infer<typeof session> {
  return {
    id: row.id,
    app_id: row.appId,
    kind: row.kind,
    created_at: toRfc3339(row.createdAt),
    last_used_at: toRfc3339(row.lastUsedAt),
    expires_at: toRfc3339(row.expiresAt),
    client: row.client,
    network: row.network,
  }
}

export const mail = z
  .strictObject({
    id,
    template: z.string(),
    to: z.string().meta({ description: 'Masked in the list of all mails, such as `a***@example.com`.' }),
    user_id: nullable(id),
    state: z.enum(['queued', 'sent', 'failed', 'expired']),
    attempts: z.int(),
    created_at: instant,
    next_attempt_at: nullable(instant),
    settled_at: nullable(instant),
    last_error: nullable(z.string()),
  })
  .meta({ id: 'Mail' })
export const mailExample = {
  id: EXAMPLE_IDS.mail,
  template: 'welcome',
  to: 'ada@example.com',
  user_id: EXAMPLE_IDS.user,
  state: 'failed',
  attempts: 3,
  created_at: EXAMPLE_AT,
  next_attempt_at: null,
  settled_at: EXAMPLE_AT,
  last_error: '550 no such mailbox',
}
export function mailObject(row: ListedMail): z.infer<typeof mail> {
  return {
    id: row.id,
    template: row.kind,
    to: row.recipient,
    user_id: row.userId,
    state: row.state,
    attempts: row.attempts,
    created_at: toRfc3339(row.createdAt),
    next_attempt_at: row.state === 'queued' ? toRfc3339(row.nextAttemptAt) : null,
    settled_at: toRfc3339OrNull(row.settledAt),
    last_error: row.lastError,
  }
}

export const suppression = z
  .strictObject({
    address: z.string(),
    reason: z.enum(['bounce', 'complaint']),
    provider: z.string(),
    at: instant,
    until: instant,
  })
  .meta({ id: 'Suppression' })
export const suppressionExample = {
  address: 'ada@example.com',
  reason: 'bounce',
  provider: 'postmark',
  at: EXAMPLE_AT,
  until: EXAMPLE_AT,
}
export function suppressionObject({ address, reason, provider, at, until }: Suppression) {
  return { address, reason, provider, at: toRfc3339(at), until: toRfc3339(until) }
}

export const agent = answers.connection
  .extend({ user_id: id, node_id: id })
  .meta({ id: 'AgentConnectionOfUser' })
export const agentExample = {
  ...answers.connectionExample,
  user_id: EXAMPLE_IDS.user,
  node_id: EXAMPLE_IDS.node,
}
export function agentObject(row: PresenceRow): z.infer<typeof agent> {
  return { ...connectionObject(row), user_id: row.userId, node_id: row.nodeId }
}

export const node = z
  .strictObject({
    id,
    version: z.string(),
    started_at: instant,
    seen_at: instant,
    connections: z.int(),
  })
  .meta({ id: 'Node' })
export const nodeExample = {
  id: EXAMPLE_IDS.node,
  version: '1.0.0',
  started_at: EXAMPLE_AT,
  seen_at: EXAMPLE_AT,
  connections: 12,
}
export function nodeObject(row: NodeStatus): z.infer<typeof node> {
  return {
    id: row.id,
    version: row.version,
    started_at: toRfc3339(row.startedAt),
    seen_at: toRfc3339(row.seenAt),
    connections: row.connections,
  }
}

const auditedState = nullable(z.record(z.string(), z.unknown()))
export const auditEvent = z
  .strictObject({
    id,
    at: instant,
    actor: z.strictObject({
      type: z.enum(['user', 'command', 'service']),
      id: nullable(id),
      key_id: nullable(id),
      session_id: nullable(id),
    }),
    subject: z.strictObject({ type: z.string(), id: nullable(z.string()), user_id: nullable(id) }),
    type: z.string(),
    before: auditedState,
    after: auditedState,
    reason: nullable(z.string()),
    network: nullable(z.string()),
    request_id: nullable(z.string()),
    reason_hash: nullable(z.string()),
    reason_salt: nullable(z.string()),
    sequence: z.int(),
    previous_hash: z.string(),
    hash: z.string(),
  })
  .meta({ id: 'AuditEvent' })
export const auditEventExample = {
  id: EXAMPLE_IDS.event,
  at: EXAMPLE_AT,
  actor: { type: 'user', id: EXAMPLE_IDS.admin, key_id: null, session_id: EXAMPLE_IDS.session },
  subject: { type: 'user', id: EXAMPLE_IDS.user, user_id: EXAMPLE_IDS.user },
  type: 'user.suspended',
  before: { status: 'active' },
  after: { status: 'suspended' },
  reason: 'spam',
  network: '203.0.113.7',
  request_id: EXAMPLE_IDS.request,
  reason_hash: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
  reason_salt: 'q83v',
  sequence: 2,
  previous_hash: '0'.repeat(64),
  hash: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
}
