import type { FieldError } from '@keyway/sdk/protocol'
import { z } from 'zod'
import { invalidRequest } from '../errors.ts'
import { MAX_FIELD_NAME_LENGTH, suggestion } from './unknown-name.ts'

const MAX_FIELD_ERRORS = 20

/**
 * The value as parsed by the schema. Unknown fields are ignored, or refused by a strict schema. Bodies that create or
 * change a credential are strict: a mistyped restriction must not leave the credential unrestricted.
 *
 * @throws KeywayError `invalid_request`, one entry for each refused field
 */
export function validate<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const known = schema instanceof z.ZodObject ? Object.keys(schema.shape) : []
  const errors = result.error.issues.flatMap(issue => toFieldErrors(issue, known)).slice(0, MAX_FIELD_ERRORS)
  throw invalidRequest(errors.filter((error, index) => !isRepetition(error, errors[index - 1])))
}

/**
 * Whether an error repeats the previous one: a number that is no integer and too large fails two checks with one
 * message.
 */
function isRepetition(error: FieldError, before: FieldError | undefined): boolean {
  return error.field === before?.field && error.message === before.message
}

function toFieldErrors(issue: z.core.$ZodIssue, known: readonly string[]): FieldError[] {
  if (issue.code === 'unrecognized_keys' && issue.path.length === 0)
    return issue.keys.slice(0, MAX_FIELD_ERRORS).map(name => unknownField(name, known))
  const isWhole = issue.path.length === 0
  return [
    {
      field: isWhole ? 'body' : issue.path.map(String).join('.'),
      message:
        isWhole && issue.code === 'invalid_type' ? 'must be one JSON object, for example {}' : issue.message,
    },
  ]
}

function unknownField(name: string, known: readonly string[]): FieldError {
  return {
    field: name.slice(0, MAX_FIELD_NAME_LENGTH),
    message: `is not a known field; ${suggestion(name, known)}`,
  }
}
