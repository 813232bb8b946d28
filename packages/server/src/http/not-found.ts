import { KeywayError } from '../errors.ts'
import { withDocs } from '../problems.ts'

/** The error for an unknown resource, and the same for one of another user. */
export function notFound(): KeywayError {
  return new KeywayError('not_found', withDocs('There is nothing here, or it is not yours.'))
}
