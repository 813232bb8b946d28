import { html } from 'hono/html'
import { texts } from '../languages/current.ts'
import type { Html } from './layout.ts'

/** A value as code with a button that copies it. @param id unique on the page */
export function copyableValue(id: string, value: string): Html {
  const { copy, copied } = texts.keys
  return html`<span class="copyable"><code id="${id}">${value}</code> <button type="button" class="plain copy" data-copy="${id}" data-copied="${copied}" aria-live="polite">${copy}</button></span>`
}
