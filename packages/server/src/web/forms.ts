import type { Context } from 'hono'
import { KeywayError } from '../errors.ts'
import type { Secrets } from '../secrets.ts'
import type { Cookies } from './cookies.ts'

export const FORM_TOKEN_FIELD = 'form_token'
const MAX_FORM_BYTES = 16 * 1024

export interface Forms {
  /** The token for the forms of this answer. */
  token(c: Context): string
  /**
   * The fields of a form that one of our own pages sent from this browser.
   *
   * @throws KeywayError `forbidden` for every other origin or a token that is not this browser's,
   *   `payload_too_large`, `unsupported_media_type`
   */
  read(c: Context): Promise<URLSearchParams>
}

/** Two locks on every form: where the browser says it comes from, and a MAC over a cookie that no other site can read. */
export function createForms({
  secrets,
  cookies,
  publicUrl,
}: {
  secrets: Secrets
  cookies: Cookies
  publicUrl: string
}): Forms {
  return {
    token: c => secrets.mac('form-token', cookies.formSecret(c)),
    async read(c) {
      if (!isSameOrigin(c, publicUrl)) throw new KeywayError('forbidden', 'This form came from another site.')
      const fields = new URLSearchParams(await readBody(c))
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

async function readBody(c: Context): Promise<string> {
  if (c.req.header('content-type')?.split(';')[0]?.trim() !== 'application/x-www-form-urlencoded') {
    throw new KeywayError('unsupported_media_type', 'Send the form as application/x-www-form-urlencoded.')
  }
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of c.req.raw.body ?? []) {
    size += chunk.byteLength
    if (size > MAX_FORM_BYTES)
      throw new KeywayError('payload_too_large', `The form is larger than ${MAX_FORM_BYTES / 1024} KiB.`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}
