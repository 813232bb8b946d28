import { z } from 'zod'
import { MAX_IMPORTED_KEYS } from '../../../api-keys/import.ts'
import { MAX_IMPORTED_USERS } from '../../../users/import.ts'
import { ok } from '../../answer.ts'
import { expected, optional } from '../../body-fields.ts'
import { EXAMPLE_IDS } from '../../example-ids.ts'
import type { HttpPorts } from '../../http-ports.ts'
import {
  importedKey,
  importedKeyExample,
  importedUser,
  importedUserExample,
  keyToImport,
  userToImport,
} from '../../import-objects.ts'
import { type Route, route } from '../../route.ts'
import { reason, TAG, toActedBy } from './acting.ts'

const MAX_BODY_BYTES = 1024 * 1024
/**
 * Maximum number of values in the JSON body of an import, as `parseJson` counts them. The largest row has 40: its
 * object, 7 fields and 32 scopes. 48 leaves room for further fields.
 */
const MAX_IMPORT_JSON_VALUES = MAX_IMPORTED_KEYS * 48

const keysBody = z.strictObject({
  keys: rowsOf(importedKey, MAX_IMPORTED_KEYS, '[{"email": …, "sha256": …, "prefix": …, "scopes": []}]'),
  reason: optional(reason),
})
const usersBody = z.strictObject({
  users: rowsOf(importedUser, MAX_IMPORTED_USERS, '[{"email": "ada@example.com"}]'),
  reason: optional(reason),
})

const importOutcome = z
  .strictObject({
    imported: z.int(),
    skipped: z.int(),
    data: z.array(z.strictObject({ id: z.uuid(), imported: z.boolean() })),
  })
  .meta({ id: 'Imported' })
const example = { imported: 1, skipped: 0, data: [{ id: EXAMPLE_IDS.key, imported: true }] }
const importAnswer = { schema: importOutcome, example }

export function importRoutes({ apiKeys, users }: Pick<HttpPorts, 'apiKeys' | 'users'>): Route[] {
  return [
    route({
      method: 'POST',
      path: '/v1/admin/api-keys/import',
      operation: 'importApiKeys',
      tag: TAG,
      summary: 'Import keys of another system by their hashes',
      description: `Up to ${MAX_IMPORTED_KEYS}, all or none. \`sha256\` is of the whole key, \`prefix\` its first characters; \`scopes\` must be said, \`[]\` means all permissions. From then on the keys are accepted as those of this service are, until they are revoked. A hash that its owner has already is skipped, also where that key was revoked. Only for keys with at least 128 random bits: others can be guessed from their hashes.`,
      access: 'admin:session',
      body: keysBody,
      maxBodyBytes: MAX_BODY_BYTES,
      maxJsonValues: MAX_IMPORT_JSON_VALUES,
      example: { keys: [importedKeyExample] },
      answers: [{ status: 200, description: 'The keys, in the order of the request.', ...importAnswer }],
      errors: ['key_limit_reached', 'key_conflict'],
      async handle({ body, ...input }) {
        const actedBy = toActedBy(input, body.reason ?? null)
        return ok(importObject(await apiKeys.importKeys(body.keys.map(keyToImport), actedBy)))
      },
    }),
    route({
      method: 'POST',
      path: '/v1/admin/users/import',
      operation: 'importUsers',
      tag: TAG,
      summary: 'Import people',
      description: `Up to ${MAX_IMPORTED_USERS}, all or none: accounts without credit, plan or mail, which the first sign-in to the address brings, once. Addresses that have an account are skipped.`,
      access: 'admin:write',
      body: usersBody,
      maxBodyBytes: MAX_BODY_BYTES,
      maxJsonValues: MAX_IMPORT_JSON_VALUES,
      example: { users: [importedUserExample] },
      answers: [{ status: 200, description: 'The accounts, in the order of the request.', ...importAnswer }],
      errors: [],
      async handle({ body, ...input }) {
        const actedBy = toActedBy(input, body.reason ?? null)
        return ok(importObject(await users.importUsers(body.users.map(userToImport), actedBy)))
      },
    }),
  ]
}

function rowsOf<Row extends z.ZodType>(row: Row, max: number, what: string) {
  return z
    .array(row, { error: expected('a list', what) })
    .min(1, { error: 'must have at least one entry' })
    .max(max, { error: `must have at most ${max} entries` })
}

function importObject(rows: readonly { id: string; isNew: boolean }[]): z.infer<typeof importOutcome> {
  const createdCount = rows.filter(({ isNew }) => isNew).length
  return {
    imported: createdCount,
    skipped: rows.length - createdCount,
    data: rows.map(({ id, isNew }) => ({ id, imported: isNew })),
  }
}
