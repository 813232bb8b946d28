import { KeywayError } from '../errors.ts'
import { withDocs } from '../problems.ts'

/** The same error for unknown resources and for those of other users. */
export function notFound(): KeywayError {
  return new KeywayError('not_found', withDocs('There is nothing here, or it is not yours.'))
}
