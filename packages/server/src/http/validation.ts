import type { FieldError } from '@keyway/sdk/protocol'
import { z } from 'zod'
import { invalidRequest } from '../errors.ts'
import { MAX_FIELD_NAME_LENGTH, nearestKnown, suggestion } from './unknown-name.ts'

const MAX_FIELD_ERRORS = 20

/**
 * The value as parsed by the schema. Unknown fields are ignored, or refused by a strict schema. Bodies that create or
 * change a credential are strict: a mistyped restriction must not leave the credential unrestricted.
 *
 * @throws KeywayError `invalid_request`, with an entry for each refused field, at most MAX_FIELD_ERRORS
 */
export function validate<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const knownFields = schema instanceof z.ZodObject ? Object.keys(schema.shape) : []
  const errors = result.error.issues
    .flatMap(issue => toFieldErrors(issue, knownFields))
    .concat(mistypedFields(result.error.issues, value, knownFields))
    .slice(0, MAX_FIELD_ERRORS)
  throw invalidRequest(errors.filter((error, index) => !isRepetition(error, errors[index - 1])))
}

/**
 * Whether an error repeats the previous one: a number that is both fractional and too large fails two checks, which
 * have the same message.
 */
function isRepetition(error: FieldError, previous: FieldError | undefined): boolean {
  return error.field === previous?.field && error.message === previous.message
}

function toFieldErrors(issue: z.core.$ZodIssue, knownFields: readonly string[]): FieldError[] {
  if (issue.code === 'unrecognized_keys' && issue.path.length === 0)
    return issue.keys.slice(0, MAX_FIELD_ERRORS).map(name => unknownField(name, knownFields))
  const isAboutBody = issue.path.length === 0
  return [
    {
      field: isAboutBody ? 'body' : issue.path.map(String).join('.'),
      message:
        isAboutBody && issue.code === 'invalid_type'
          ? 'must be one JSON object, for example {}'
          : issue.message,
    },
  ]
}

/**
 * Errors about unknown fields that a schema which is not strict ignores, if the nearest known field is required and
 * missing: its name was probably mistyped.
 */
function mistypedFields(
  issues: readonly z.core.$ZodIssue[],
  value: unknown,
  knownFields: readonly string[],
): FieldError[] {
  if (typeof value !== 'object' || value === null || issues.some(isAboutUnknownFields)) return []
  const missingFields = issues
    .flatMap(({ path }) => (path.length === 1 ? [String(path[0])] : []))
    .filter(name => !Object.hasOwn(value, name))
  if (missingFields.length === 0) return []
  return Object.keys(value)
    .filter(name => !knownFields.includes(name))
    .slice(0, MAX_FIELD_ERRORS)
    .filter(name => missingFields.includes(nearestKnown(name, knownFields) ?? ''))
    .map(name => unknownField(name, knownFields))
}

function isAboutUnknownFields({ code, path }: z.core.$ZodIssue): boolean {
  return code === 'unrecognized_keys' && path.length === 0
}

function unknownField(name: string, knownFields: readonly string[]): FieldError {
  return {
    field: name.slice(0, MAX_FIELD_NAME_LENGTH),
    message: `is not a known field; ${suggestion(name, knownFields)}`,
  }
}
