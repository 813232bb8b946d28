import type { z } from 'zod'
import { toScopes } from '../api-keys/api-key.ts'
import type { KeyToImport } from '../api-keys/import.ts'
import { DEFAULT_KEY_APP_ID } from '../apps/app.ts'
import { parseId } from '../ids.ts'
import type { UserToImport } from '../users/import.ts'
import { email, instant, name, nullIfEmpty, optional, parsed, strict } from './body-fields.ts'
import { EXAMPLE_IDS } from './example-ids.ts'
import { externalId } from './key-attachments.ts'
import { importedScopes } from './key-scopes.ts'

/** Schemas of the rows of an import, for requests and for files. */

const EXAMPLE_HASH = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'

/** Converts 64 hexadecimal digits to the stored form of a SHA-256 (base64url). */
const sha256 = parsed('the SHA-256 of the whole key as 64 hexadecimal digits', EXAMPLE_HASH, digits =>
  /^[0-9a-f]{64}$/i.test(digits) ? Buffer.from(digits, 'hex').toString('base64url') : null,
)

/** Visible ASCII only, since pages and mails show the prefix. */
const prefix = parsed('the first characters of the key, 1 to 12', 'sk_live_4eC3', start =>
  /^[\x21-\x7e]{1,12}$/.test(start) ? start : null,
)

export const importedKey = strict({
  user_id: optional(parsed('an id', EXAMPLE_IDS.user, parseId)),
  email: optional(email),
  sha256,
  prefix,
  name: optional(name),
  scopes: importedScopes,
  expires_at: optional(instant),
  external_id: optional(externalId),
}).refine(row => (row.user_id === undefined) !== (row.email === undefined), {
  error: 'must have user_id or email, and not both',
})

export function keyToImport(row: z.output<typeof importedKey>): KeyToImport {
  return {
    owner: row.user_id === undefined ? { email: row.email! } : { userId: row.user_id },
    keyHash: row.sha256,
    keyPrefix: row.prefix,
    name: nullIfEmpty(row.name) ?? null,
    scopes: toScopes(row.scopes),
    expiresAt: row.expires_at ?? null,
    appId: DEFAULT_KEY_APP_ID,
    externalId: nullIfEmpty(row.external_id) ?? null,
  }
}

export const importedUser = strict({
  email,
  name: optional(name),
  external_id: optional(externalId),
})

export function userToImport(row: z.output<typeof importedUser>): UserToImport {
  return {
    email: row.email,
    name: nullIfEmpty(row.name) ?? null,
    externalId: nullIfEmpty(row.external_id) ?? null,
  }
}

export const importedKeyExample = {
  email: 'ada@example.com',
  sha256: EXAMPLE_HASH,
  prefix: 'sk_live_4eC3',
  name: 'Laptop',
  scopes: ['agent:connect'],
}
export const importedUserExample = { email: 'grace@example.com', name: 'Grace', external_id: 'customer-42' }
