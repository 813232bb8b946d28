import { html } from 'hono/html'
import { formatCount } from '../chart.ts'
import type { PageContext } from '../kit.ts'
import type { Html } from '../layout.ts'
import { adminTexts } from './texts.ts'

export interface ListPage {
  path: string
  /** The filters of the list, which links to other pages keep; empty ones are left out. */
  filters?: Readonly<Record<string, string | undefined>>
  /** Number of rows on this page. */
  rowCount: number
  /** Number of rows of the whole list, if known. */
  total?: number | null
  /** The query parameters of the next page; null on the last page. */
  next: Readonly<Record<string, string>> | null
}

/** The position of a page in its list, with links to the first and the next page. Empty for an empty list. */
export function listFoot(
  c: PageContext,
  { path, filters = {}, rowCount, total = null, next }: ListPage,
): Html | '' {
  const start = startOf(c)
  const end = start + rowCount - 1
  if (rowCount === 0 && start === 1 && !next) return ''
  const activeFilters = Object.entries(filters).filter((entry): entry is [string, string] =>
    Boolean(entry[1]),
  )
  const pathTo = (more: Readonly<Record<string, string>>) => {
    const query = new URLSearchParams([...activeFilters, ...Object.entries(more)]).toString()
    return query ? `${path}?${query}` : path
  }
  const shownTotal = next === null ? end : total !== null && total > end ? total : null
  const firstLink = start > 1 ? html`<a href="${pathTo({})}">${adminTexts.list.first}</a>` : ''
  const nextLink = next
    ? html`<a href="${pathTo({ ...next, start: String(end + 1) })}">${adminTexts.list.next}</a>`
    : ''
  return html`<div class="card-foot list-foot"><span class="quiet">${rangeText(start, end, shownTotal)}</span>${firstLink} ${nextLink}</div>`
}

function rangeText(start: number, end: number, total: number | null): string {
  if (end < start) return ''
  const range = start === end ? formatCount(end) : `${formatCount(start)}–${formatCount(end)}`
  return total === null ? range : adminTexts.list.of(range, formatCount(total))
}

/** The number of the first row, from the link to the page. A forged one only changes the displayed numbers. */
function startOf(c: PageContext): number {
  const [text] = /^[1-9]\d{0,8}$/.exec(c.req.query('start') ?? '') ?? []
  return text ? Number(text) : 1
}
