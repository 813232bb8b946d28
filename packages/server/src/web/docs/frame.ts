import { html, raw } from 'hono/html'
import { texts } from '../../languages/current.ts'
import type { PageContext, PageKit } from '../kit.ts'
import type { Html } from '../layout.ts'
import { isForOperators, type Operation } from './api-document.ts'
import { GUIDES } from './library.ts'

export interface DocsPage {
  title: string
  body: Html
  /** The path of the current entry of the menu. */
  current: string
  status?: number
  query?: string
}

/** What all pages of the documents share. */
export interface Docs {
  kit: PageKit
  /** In the order of the reference. */
  operations: readonly Operation[]
}

/** A page with the menu and the search beside it. */
export function renderInFrame(
  { kit, operations }: Docs,
  c: PageContext,
  { title, body, current, status, query = '' }: DocsPage,
): Response | Promise<Response> {
  const { docs } = texts
  const framed = html`<div class="docs">
<details class="docs-menu"><summary>${docs.menu}</summary><div>${searchForm(query)}${menu(operations, current, mayOperate(c))}</div></details>
<article class="doc">${body}</article>
</div>`
  return kit.render(c, { title, current: '/docs', hasDocuments: true }, framed, status)
}

/** Whether the documents for operators are shown. */
export function mayOperate(c: PageContext): boolean {
  const { role = 'user' } = c.get('signedIn')?.user ?? {}
  return role !== 'user'
}

export const MAX_QUERY_LENGTH = 100

export function searchForm(query: string): Html {
  const { docs } = texts
  return html`<form method="get" action="/docs/search" role="search" class="docs-search"><label class="unseen" for="docs-query">${docs.searchFor}</label><input id="docs-query" name="q" type="search" value="${query}" maxlength="${MAX_QUERY_LENGTH}" placeholder="${docs.searchFor}"><button class="second small">${docs.search}</button></form>`
}

type Entry = readonly [path: string, label: string]

function menu(operations: readonly Operation[], current: string, isOperator: boolean): Html {
  const { docs } = texts
  const guidesOf = (wanted: string): Entry[] =>
    GUIDES.filter(({ group }) => group === wanted).map(({ slug, label }) => [`/docs/${slug}`, label])
  const tags = [...new Set(operations.map(({ tag }) => tag))]
  const tagEntries = (forOperators: boolean): Entry[] =>
    tags.filter(tag => isForOperators(tag) === forOperators).map(tag => [tagPath(tag), tag])
  const groups: [string, Entry[]][] = [
    [docs.guides, guidesOf('guides')],
    [docs.reference, [...tagEntries(false), ['/docs/errors', docs.errors]]],
    ...(isOperator
      ? [[docs.operators, [...guidesOf('operators'), ...tagEntries(true)]] as [string, Entry[]]]
      : []),
  ]
  return html`<nav aria-label="${docs.menu}">${groups.map(
    ([title, entries]) =>
      html`<p>${title}</p><ul>${entries.map(([path, label]) => html`<li><a href="${path}"${path === current ? raw(' aria-current="page"') : ''}>${label}</a></li>`)}</ul>`,
  )}</nav>`
}

export function tagPath(tag: string): string {
  return `/docs/api/${tag.toLowerCase().replaceAll(' ', '-')}`
}

export function operationPath({ operationId }: Operation): string {
  return `/docs/call/${operationId}`
}
