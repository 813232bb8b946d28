import { html } from 'hono/html'
import type { TextTemplate } from '../languages/text.ts'
import type { Html } from './layout.ts'

/** Delimits placeholders: a private-use character, which no text contains. */
const DELIMITER = '\uE000'

/** A text with markup in some of its placeholders. */
export function richText<Names extends string>(
  text: TextTemplate<Names>,
  values: Record<Names, Html | string>,
): Html {
  const names = Object.keys(values) as Names[]
  const delimitedIndexes = names.map((name, index) => [name, `${DELIMITER}${index}${DELIMITER}`])
  const parts = text(Object.fromEntries(delimitedIndexes) as Record<Names, string>).split(DELIMITER)
  // Every second part is the number of a placeholder.
  return html`${parts.map((part, index) => (index % 2 === 0 ? part : values[names[Number(part)]!]))}`
}
