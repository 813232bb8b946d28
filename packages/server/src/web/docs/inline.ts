import { html } from 'hono/html'
import type { Html } from '../layout.ts'

/** A sentence of ours in which `code` is marked by backticks. */
export function inline(text: string): Html {
  return html`${text.split('`').map((part, at) => (at % 2 === 1 ? html`<code>${part}</code>` : part))}`
}
