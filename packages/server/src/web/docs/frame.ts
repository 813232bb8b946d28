import { html, raw } from 'hono/html'
import { texts } from '../../languages/current.ts'
import type { PageContext, PageKit } from '../kit.ts'
import type { Html } from '../layout.ts'
import { isForOperators, type Operation } from './api-document.ts'
import { GUIDES } from './library.ts'

export interface DocsPage {
  title: string
  body: Html
  /** Path of the current menu entry. */
  current: string
  /** The operation that the page shows, if any; `current` is then the menu entry of its tag. */
  call?: Operation
  status?: number
}

/** What all pages of the documentation share. */
export interface Docs {
  kit: PageKit
  /** The operations of the API, in the order of the reference. */
  operations: readonly Operation[]
}

/** A page of the documentation next to its menu and search. */
export function renderInFrame(
  { kit, operations }: Docs,
  c: PageContext,
  page: DocsPage,
): Response | Promise<Response> {
  const { docs } = texts
  const { title, body, status, current } = page
  const content = html`<div class="docs">
<details class="docs-menu"><summary>${docs.menu}</summary><div>${current === SEARCH_PATH ? '' : searchForm('')}${menu(operations, page, mayReadOperatorDocs(c))}</div></details>
<article class="doc">${body}</article>
</div>`
  return kit.render(c, { title, current: '/docs', isDocumentation: true }, content, status)
}

/** Whether the documents for operators are shown: only to administrators and support. */
export function mayReadOperatorDocs(c: PageContext): boolean {
  const { role = 'user' } = c.get('signedIn')?.user ?? {}
  return role !== 'user'
}

export const SEARCH_PATH = '/docs/search'
export const MAX_QUERY_LENGTH = 100

export function searchForm(query: string): Html {
  const { docs } = texts
  return html`<form method="get" action="${SEARCH_PATH}" role="search" class="docs-search"><label class="unseen" for="docs-query">${docs.searchFor}</label><input id="docs-query" name="q" type="search" value="${query}" maxlength="${MAX_QUERY_LENGTH}" placeholder="${docs.search}"><button class="second small" aria-label="${docs.search}">${MAGNIFIER}</button></form>`
}

const MAGNIFIER = raw(
  '<svg class="magnifier" viewBox="0 0 20 20" aria-hidden="true" focusable="false"><circle cx="8.5" cy="8.5" r="5.5"/><path d="m12.7 12.7 4.8 4.8"/></svg>',
)

type MenuEntry = readonly [path: string, label: string]

function menu(operations: readonly Operation[], { current, call }: DocsPage, isOperator: boolean): Html {
  const { docs } = texts
  const guidesOf = (wanted: string): MenuEntry[] =>
    GUIDES.filter(({ group }) => group === wanted).map(({ slug, label }) => [`/docs/${slug}`, label])
  const tags = [...new Set(operations.map(({ tag }) => tag))]
  const tagEntries = (forOperators: boolean): MenuEntry[] =>
    tags.filter(tag => isForOperators(tag) === forOperators).map(tag => [tagPath(tag), tag])
  const groups: [string, MenuEntry[]][] = [
    [docs.guides, guidesOf('guides')],
    [docs.reference, [...tagEntries(false), ['/docs/errors', docs.errors]]],
    ...(isOperator
      ? [[docs.operators, [...guidesOf('operators'), ...tagEntries(true)]] as [string, MenuEntry[]]]
      : []),
  ]
  const shownPath = call ? operationPath(call) : current
  const link = ([path, label]: MenuEntry) =>
    html`<a href="${path}"${path === shownPath ? raw(' aria-current="page"') : ''}>${label}</a>`
  const calls = operations.filter(({ tag }) => tagPath(tag) === current)
  const operationList = html`<ul>${calls.map(each => html`<li>${link([operationPath(each), each.summary])}</li>`)}</ul>`
  return html`<nav aria-label="${docs.menu}">${groups.map(
    ([title, entries]) =>
      html`<p>${title}</p><ul>${entries.map(entry => html`<li>${link(entry)}${entry[0] === current && calls.length > 0 ? operationList : ''}</li>`)}</ul>`,
  )}</nav>`
}

export function tagPath(tag: string): string {
  return `/docs/api/${tag.toLowerCase().replaceAll(' ', '-')}`
}

/** The CSS class of a method's tag; other methods have `warn`. */
const METHOD_TAG_CLASSES: Readonly<Record<string, string>> = {
  GET: 'active',
  POST: 'own',
  DELETE: 'revoked',
}

/** An operation in the form `POST /v1/api-keys`, with the method as a tag. */
export function methodAndPath({ method, path }: Operation): Html {
  return html`<span class="tag ${METHOD_TAG_CLASSES[method] ?? 'warn'}">${method}</span> <code>${path}</code>`
}

export function operationPath({ operationId }: Operation): string {
  return `/docs/call/${operationId}`
}
