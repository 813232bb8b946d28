import type { FieldError } from '@keyway/sdk/protocol'
import { z } from 'zod'
import { invalidRequest } from '../errors.ts'
import { nearestName } from '../nearest-name.ts'

/** More would help nobody, and every one costs the answer bytes. */
const MAX_FIELD_ERRORS = 20
/** Of an unknown field, as it is repeated in the answer. */
const MAX_FIELD_NAME_LENGTH = 64
/** Of an unknown field for which the nearest known one is looked for: the search grows with its length. */
const MAX_HINTED_NAME_LENGTH = 24

/**
 * The value as the schema understands it. Names that the schema does not have are ignored; a strict one refuses them:
 * bodies that make or change a credential are strict, since there a mistyped restriction would leave it unrestricted.
 *
 * @throws KeywayError `invalid_request`, one entry for each refused field
 */
export function validate<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const known = schema instanceof z.ZodObject ? Object.keys(schema.shape) : []
  const errors = result.error.issues.flatMap(issue => toFieldErrors(issue, known)).slice(0, MAX_FIELD_ERRORS)
  throw invalidRequest(errors.filter((error, index) => !saysWhatWasSaid(error, errors[index - 1])))
}

/** One number can be no integer and too large at once, in the same words. */
function saysWhatWasSaid(error: FieldError, before: FieldError | undefined): boolean {
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
  const field = name.slice(0, MAX_FIELD_NAME_LENGTH)
  const isHinted = name.length <= MAX_HINTED_NAME_LENGTH
  const nearest = isHinted ? nearestName(name, known, Math.max(2, name.length / 3)) : null
  const hint = nearest ? `did you mean ${JSON.stringify(nearest)}?` : `these are: ${known.join(', ')}`
  return { field, message: `is not known here; ${hint}` }
}
