import { html } from 'hono/html'
import type { Html } from '../layout.ts'

/** Renders a trusted sentence in which backticks mark `code`. */
export function inlineMarkup(text: string): Html {
  return html`${text.split('`').map((part, at) => (at % 2 === 1 ? html`<code>${part}</code>` : part))}`
}
