import { KeywayError } from '../errors.ts'

/** What is nowhere, and what is somebody else's: both alike. */
export function notFound(): KeywayError {
  return new KeywayError('not_found', withDocs('There is nothing here, or it is not yours.'))
}

/** Every 404 says where to look what there is, also one that a noun worded. */
export function withDocs(detail: string): string {
  return detail.includes('/docs') ? detail : `${detail} /docs lists what there is.`
}
