import type { Context } from 'hono'
import { KeywayError } from '../errors.ts'
import type { Secrets } from '../secrets.ts'
import type { Cookies } from './cookies.ts'

export const FORM_TOKEN_FIELD = 'form_token'

/**
 * Returns the body of a form, empty if the request has none. The HTTP layer has read it before the request counts
 * towards the limit of concurrent work.
 *
 * @throws KeywayError `payload_too_large`, `unsupported_media_type`
 */
export type FormOf = (request: Request, env: unknown) => Buffer

export interface Forms {
  /** The CSRF token for the forms of this response. */
  token(c: Context): string
  /**
   * The fields of a form that was sent by one of our pages in this browser.
   *
   * @throws KeywayError `forbidden` for another origin or an invalid token, `payload_too_large`,
   *   `unsupported_media_type`
   */
  read(c: Context): URLSearchParams
}

/** CSRF protection: checks the request's origin, and a token that is a MAC over a cookie of this site. */
export function createForms({
  secrets,
  cookies,
  publicUrl,
  formOf,
}: {
  secrets: Secrets
  cookies: Cookies
  publicUrl: string
  formOf: FormOf
}): Forms {
  return {
    token: c => secrets.mac('form-token', cookies.formSecret(c)),
    read(c) {
      if (!isSameOrigin(c, publicUrl)) throw new KeywayError('forbidden', 'This form came from another site.')
      const fields = new URLSearchParams(formOf(c.req.raw, c.env).toString())
      const token = fields.get(FORM_TOKEN_FIELD) ?? ''
      if (!secrets.verifyMac('form-token', cookies.formSecret(c), token)) {
        throw new KeywayError('forbidden', 'This form was out of date. Reload the page and try again.')
      }
      return fields
    },
  }
}

function isSameOrigin(c: Context, publicUrl: string): boolean {
  const site = c.req.header('sec-fetch-site')
  return site === undefined ? c.req.header('origin') === publicUrl : site === 'same-origin'
}
