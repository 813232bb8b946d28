import type { FieldError } from '@keyway/sdk/protocol'
import type { z } from 'zod'
import { invalidRequest } from '../errors.ts'

/** More would help nobody, and every one costs the answer bytes. */
const MAX_FIELD_ERRORS = 20

/** The value as the schema understands it. @throws KeywayError `invalid_request`, one entry for each refused field */
export function validate<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const errors = result.error.issues.slice(0, MAX_FIELD_ERRORS).map(toFieldError)
  throw invalidRequest(errors.filter((error, index) => !saysWhatWasSaid(error, errors[index - 1])))
}

/** One number can be no integer and too large at once, in the same words. */
function saysWhatWasSaid(error: FieldError, before: FieldError | undefined): boolean {
  return error.field === before?.field && error.message === before.message
}

function toFieldError(issue: z.core.$ZodIssue): FieldError {
  const isWhole = issue.path.length === 0
  return {
    field: isWhole ? 'body' : issue.path.map(String).join('.'),
    message:
      isWhole && issue.code === 'invalid_type' ? 'must be one JSON object, for example {}' : issue.message,
  }
}
