import { z } from 'zod'
import { hasControlCharacters, MAX_KEY_NAME_LENGTH } from '../api-keys/key-name.ts'
import { isAppId } from '../apps/app.ts'
import { parseRfc3339 } from '../clock.ts'
import { parseLocale } from '../languages/negotiation.ts'
import { parseEmailAddress } from '../users/email-address.ts'
import { MAX_FIELD_NAME_LENGTH, suggestion } from './unknown-name.ts'

/*
 * Schemas of fields, which routes combine into schemas of bodies. The message for a missing value or one of the wrong
 * type says what is expected, with an example. Maximum lengths are in code points.
 */

/**
 * Maximum nesting of the JSON in one field of a body. Agents get such JSON in messages, so common parsers must accept
 * the depth.
 */
export const MAX_JSON_DEPTH = 64

/** Maximum number of unknown field names that one error message quotes. */
const MAX_NAMED_FIELDS = 5

/**
 * Returns a function for Zod that creates the message for a value that is missing, of the wrong type or out of range.
 */
export function expected(what: string, example: string) {
  return (issue: { input?: unknown }) =>
    `${issue.input === undefined ? 'is required: ' : 'must be '}${what}, for example ${example}`
}

function hasCleanCharacters(value: string): boolean {
  return value.isWellFormed() && !value.includes('\0')
}

/** A text without NUL or lone surrogates, which databases and terminals do not accept. */
export function text(what: string, example: string, { max = 16_384, min = 0 } = {}) {
  return z
    .string({ error: expected(what, JSON.stringify(example)) })
    .refine(hasCleanCharacters, { error: 'must not contain NUL or lone surrogates', abort: true })
    .refine(value => value.length <= 2 * max && [...value].length <= max, {
      error: `must have at most ${max} characters`,
    })
    .refine(value => value.length >= min, {
      error: `must be ${what}, for example ${JSON.stringify(example)}`,
    })
    .meta({
      examples: [example],
      ...(max < 16_384 && { maxLength: max }),
      ...(min > 0 && { minLength: min }),
    })
}

/** A text that `parse` accepts, converted to its result. */
export function parsed<Value>(
  what: string,
  example: string,
  parse: (value: string) => Value | null,
): z.ZodType<Value, string> {
  return text(what, example).transform((value, context) => {
    const result = parse(value)
    if (result !== null) return result
    context.addIssue({ code: 'custom', message: `must be ${what}, for example ${JSON.stringify(example)}` })
    return z.NEVER
  }) as unknown as z.ZodType<Value, string>
}

/** A nested object that refuses unknown fields: a mistyped restriction must not leave something unrestricted. */
export function strict<Shape extends z.ZodRawShape>(shape: Shape) {
  const fieldNames = Object.keys(shape)
  return z.strictObject(shape, {
    error: issue =>
      issue.code === 'unrecognized_keys'
        ? issue.keys
            .slice(0, MAX_NAMED_FIELDS)
            .map(
              name =>
                `${JSON.stringify(name.slice(0, MAX_FIELD_NAME_LENGTH))} is not a known field; ${suggestion(name, fieldNames)}`,
            )
            .join(' ')
        : expected('an object', `{"${fieldNames[0]}": …}`)(issue),
  })
}

/** A field that may be omitted; null means the same. */
export function optional<Schema extends z.ZodType>(schema: Schema) {
  return schema.nullish().transform(value => value ?? undefined)
}

/** An e-mail address, converted to its canonical form, in which all addresses are stored and compared. */
export const email = parsed('one plain address', 'ada@example.com', parseEmailAddress)

const APP_ID_RULE = 'an app id: a-z, 0-9, ".", "_" and "-", at most 64 characters, no UUID'

/** The id of an app as a label; the app need not be registered. */
export const appId = text(APP_ID_RULE, 'console').refine(isAppId, {
  error: `must be ${APP_ID_RULE}, for example "console"`,
})

export const instant = parsed('an RFC 3339 instant with a time zone', '2030-01-01T00:00:00Z', parseRfc3339)

export const name = text('a name', 'Laptop', { max: MAX_KEY_NAME_LENGTH }).refine(
  value => !hasControlCharacters(value),
  { error: 'must not contain control characters' },
)

/** A language tag in its canonical form. */
export const locale = parsed('a language tag (BCP 47)', 'de-AT', parseLocale)

export const localeOrEmpty = parsed('a language tag (BCP 47), or empty', 'de-AT', sent =>
  sent === '' ? '' : parseLocale(sent),
)

/** Converts an empty text to null, which removes a value; undefined, for an omitted field, leaves it unchanged. */
export function nullIfEmpty(sent: string | undefined): string | null | undefined {
  return sent === '' ? null : sent
}

export function wholeNumber(what: string, example: number, min: number, max: number) {
  const error = expected(what, String(example))
  return z
    .int({ error })
    .min(min, { error })
    .max(max, { error })
    .meta({ examples: [example] })
}

/** A credential of any form: malformed ones are refused where they are used, with the same error as unknown ones. */
export function credential(what: string, example: string) {
  return z.string({ error: expected(what, JSON.stringify(example)) }).meta({ examples: [example] })
}

/** Any JSON value, also null, with at most MAX_JSON_DEPTH levels and without NUL or lone surrogates. */
export const json = z
  .unknown()
  .refine(value => value !== undefined, {
    error: 'is required: any JSON, for example {"hello": "world"}',
    abort: true,
  })
  .refine(isPlainJson, {
    error: `must be JSON at most ${MAX_JSON_DEPTH} levels deep, without NUL or lone surrogates`,
  })
  .meta({ description: 'Any JSON.', examples: [{ hello: 'world' }] })

/**
 * Whether a JSON value has at most MAX_JSON_DEPTH levels, and no text or name with NUL or lone surrogates. Checks level
 * by level, without recursion, so that deep nesting cannot exhaust the stack.
 */
function isPlainJson(value: unknown): boolean {
  let level = [value]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_JSON_DEPTH) return false
    const nextLevel: unknown[] = []
    for (const item of level) {
      if (typeof item === 'string' && !hasCleanCharacters(item)) return false
      if (typeof item !== 'object' || item === null) continue
      if (!Object.keys(item).every(hasCleanCharacters)) return false
      for (const member of Object.values(item)) nextLevel.push(member)
    }
    level = nextLevel
  }
  return true
}
