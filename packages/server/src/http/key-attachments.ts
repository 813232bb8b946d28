import { z } from 'zod'
import { hasControlCharacters } from '../api-keys/key-name.ts'
import {
  MAX_EXTERNAL_ID_LENGTH,
  MAX_METADATA_BYTES,
  MAX_METADATA_DEPTH,
  type Metadata,
  metadataProblem,
} from '../api-keys/metadata.ts'
import { MAX_JSON_VALUES } from './body.ts'
import { expected, text } from './body-fields.ts'

/**
 * Schemas of the fields in which clients store data of their own with a key; an imported user may also have an external
 * id.
 */

export const externalId = text('an external id', 'customer-42', { max: MAX_EXTERNAL_ID_LENGTH })
  .refine(value => !hasControlCharacters(value), { error: 'must not contain control characters' })
  .meta({ description: 'An id of your own for whatever the key belongs to; many keys may have the same.' })

/**
 * Body size limit of calls with metadata: twice the maximum size of metadata, so that the other fields, white space and
 * some escapes fit too. Metadata of the maximum size does not fit if all its characters are escaped: `\u0061` has six
 * bytes for a character of one.
 */
export const MAX_KEY_BODY_BYTES = 32 * 1024

/**
 * Accepts the object itself and not a copy of its fields, since a field named `__proto__` would be missing in a copy.
 */
export const metadata = z
  .custom<Metadata>(isObject, { error: expected('a JSON object', '{"plan": "pro"}'), abort: true })
  .superRefine((value, context) => {
    const problem = metadataProblem(value)
    if (problem) context.addIssue({ code: 'custom', message: problem })
  })
  .meta({
    type: 'object',
    description: `JSON of your own, at most ${MAX_METADATA_BYTES} bytes and ${MAX_METADATA_DEPTH} levels as stored: UTF-8 without white space and unneeded escapes; an empty object is none. The body as sent has at most ${MAX_KEY_BODY_BYTES} bytes, so send long texts in UTF-8: a \`\\u\` escape has six bytes.`,
    examples: [{ plan: 'pro' }],
  })

/**
 * Maximum number of JSON values in the body of a call with metadata: enough for metadata of the maximum size with the
 * most values (`[0,0,…]`).
 */
export const MAX_KEY_BODY_VALUES = MAX_METADATA_BYTES / 2 + MAX_JSON_VALUES

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
