import { KeywayError } from '../errors.ts'
import { withDocs } from '../problems.ts'

/** What is nowhere, and what is somebody else's: both alike. */
export function notFound(): KeywayError {
  return new KeywayError('not_found', withDocs('There is nothing here, or it is not yours.'))
}
