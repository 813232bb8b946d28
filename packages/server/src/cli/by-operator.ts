import { hasControlCharacters } from '../api-keys/key-name.ts'
import { type ActedBy, BY_COMMAND_LINE } from '../audit/audit.ts'
import { MAX_REASON_LENGTH } from '../audit/audit-event.ts'
import { OperatorError } from '../operator-error.ts'

/** The option `--reason` of commands that write to the audit. */
export const REASON = { value: 'TEXT', meaning: 'why, for the audit' }

/** The actor of a command for the audit, with the reason if one was given. @throws OperatorError */
export function byOperator(reason: string | boolean | undefined): ActedBy {
  if (typeof reason !== 'string' || reason.trim() === '') return BY_COMMAND_LINE
  if ([...reason].length > MAX_REASON_LENGTH)
    throw new OperatorError(`--reason must have at most ${MAX_REASON_LENGTH} characters.`)
  if (hasControlCharacters(reason)) throw new OperatorError('--reason must not contain control characters.')
  return { ...BY_COMMAND_LINE, reason }
}
