import { KeywayError } from '../errors.ts'
import { withDocs } from '../problems.ts'

/** The error for an unknown resource. A resource of another user gets the same error, which hides that it exists. */
export function notFound(): KeywayError {
  return new KeywayError('not_found', withDocs('There is nothing here, or it is not yours.'))
}
