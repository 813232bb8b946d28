import type { Context } from 'hono'
import { KeywayError } from '../errors.ts'
import type { Secrets } from '../secrets.ts'
import type { Cookies } from './cookies.ts'
import type { RequestFacts } from './kit.ts'

export const FORM_TOKEN_FIELD = 'form_token'

export interface Forms {
  /** The token for the forms of this answer. */
  token(c: Context): string
  /**
   * The fields of a form that one of our own pages sent from this browser.
   *
   * @throws KeywayError `forbidden` for every other origin or a token that is not this browser's,
   *   `payload_too_large`, `unsupported_media_type`
   */
  read(c: Context): URLSearchParams
}

/** Two locks on every form: where the browser says it comes from, and a MAC over a cookie that no other site can read. */
export function createForms({
  secrets,
  cookies,
  publicUrl,
  formOf,
}: {
  secrets: Secrets
  cookies: Cookies
  publicUrl: string
  formOf: RequestFacts['formOf']
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
