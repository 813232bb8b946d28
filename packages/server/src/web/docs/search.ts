import { html } from 'hono/html'
import { texts } from '../../languages/current.ts'
import { PROBLEMS } from '../../problems.ts'
import type { PageContext } from '../kit.ts'
import { emptyList, type Html } from '../layout.ts'
import { isForOperators } from './api-document.ts'
import {
  type Docs,
  MAX_QUERY_LENGTH,
  mayReadOperatorDocs,
  operationPath,
  renderInFrame,
  SEARCH_PATH,
  searchForm,
} from './frame.ts'
import { GUIDES, type Library } from './library.ts'

/** What a search can find: a section, an operation or an error. */
interface SearchEntry {
  path: string
  title: string
  /** The title of the guide that contains a section, the method and path of an operation, or the code of an error. */
  context: string
  text: string
  /** The `operationId` of an operation, which is searched but not shown; absent for other entries. */
  hiddenName?: string
  /** The searched texts in lower case, computed once, since anybody may search as often as they like. */
  lowerCase: { title: string; context: string; text: string }
  forOperators: boolean
}

interface Hit {
  entry: SearchEntry
  score: number
}

const MAX_WORDS = 8
const MAX_HITS = 50
const EXCERPT_LENGTH = 180

export function createSearch(docs: Docs, library: Library) {
  let entries: SearchEntry[] | undefined

  /** Handles /docs/search?q=… */
  return (c: PageContext) => {
    entries ??= allEntries(docs, library)
    const query = (c.req.query('q') ?? '').trim().slice(0, MAX_QUERY_LENGTH)
    const words = wordsOf(query)
    const hits = search(
      entries.filter(({ forOperators }) => !forOperators || mayReadOperatorDocs(c)),
      words,
    )
    const { docs: labels } = texts
    // The search form is above the results rather than in the menu, which is closed on phones.
    const body = html`<h1>${labels.searchFor}</h1>${searchForm(query)}${query === '' ? '' : resultList(query, words, hits)}`
    return renderInFrame(docs, c, { title: labels.searchFor, body, current: SEARCH_PATH })
  }
}

function resultList(query: string, words: readonly string[], hits: readonly Hit[]): Html {
  const { docs } = texts
  if (hits.length === 0) return emptyList(docs.notFound({ query }), docs.notFoundLead)
  return html`<p class="lead" role="status">${docs.found({ count: hits.length, query })}</p>
<ol class="hits">${hits.map(({ entry }) => html`<li><a href="${entry.path}">${entry.title}</a>${entry.context === entry.title ? '' : html` <span class="quiet">${entry.context}</span>`}<p>${excerpt(entry, words)}</p></li>`)}</ol>`
}

function allEntries(docs: Docs, library: Library): SearchEntry[] {
  return collectEntries(docs, library).map(entry => {
    const { title, context, text, hiddenName = '' } = entry
    const lowerCase = {
      title: title.toLowerCase(),
      context: `${context} ${hiddenName}`.toLowerCase(),
      text: text.toLowerCase(),
    }
    return { ...entry, lowerCase }
  })
}

function collectEntries({ operations }: Docs, library: Library): Omit<SearchEntry, 'lowerCase'>[] {
  const sectionEntries = GUIDES.flatMap(guide => {
    const { sections } = library.read(guide)
    return sections.map(({ anchor, heading, text }) => ({
      path: `/docs/${guide.slug}${anchor ? `#${anchor}` : ''}`,
      title: heading || guide.label,
      context: guide.label,
      text,
      forOperators: guide.group === 'operators',
    }))
  })
  const calls = operations.map(operation => ({
    path: operationPath(operation),
    title: operation.summary,
    context: `${operation.method} ${operation.path}`,
    text: operation.description.replaceAll('`', ''),
    hiddenName: operation.operationId,
    forOperators: isForOperators(operation.tag),
  }))
  const errors = Object.entries(PROBLEMS).map(([code, { title, help }]) => ({
    path: `/errors/${code}`,
    title,
    context: code,
    text: help.replaceAll('`', ''),
    forOperators: false,
  }))
  return [...sectionEntries, ...calls, ...errors]
}

function wordsOf(query: string): string[] {
  const words = query.toLowerCase().split(/[^\p{L}\p{N}_./-]+/u)
  return [...new Set(words.filter(Boolean))].slice(0, MAX_WORDS)
}

/** At most MAX_HITS entries that contain every word in title, context or text, best first; none without words. */
function search(entries: readonly SearchEntry[], words: readonly string[]): Hit[] {
  if (words.length === 0) return []
  return entries
    .map(entry => ({ entry, score: scoreOf(entry, words) }))
    .filter(({ score }) => score > 0)
    .sort((one, other) => other.score - one.score)
    .slice(0, MAX_HITS)
}

/** What a word in the title or in the context adds to the score; an occurrence in the text adds 1. */
const TITLE_WEIGHT = 20
const CONTEXT_WEIGHT = 8
/** Maximum number of occurrences in a text that count. */
const MAX_COUNTED = 5

function scoreOf({ lowerCase: { title, context, text } }: SearchEntry, words: readonly string[]): number {
  let score = 0
  for (const word of words) {
    const wordScore =
      countOf(word, text) +
      (title.includes(word) ? TITLE_WEIGHT : 0) +
      (context.includes(word) ? CONTEXT_WEIGHT : 0)
    if (wordScore === 0) return 0
    score += wordScore
  }
  return score
}

/** The number of occurrences, at most MAX_COUNTED. */
function countOf(word: string, text: string): number {
  let count = 0
  for (let at = text.indexOf(word); at >= 0 && count < MAX_COUNTED; count++)
    at = text.indexOf(word, at + word.length)
  return count
}

/**
 * The text around the first word that is found, or its beginning if it contains none; cut at spaces if possible, with
 * all found words marked.
 */
function excerpt({ text, lowerCase }: SearchEntry, words: readonly string[]): Html {
  const matches = words.map(word => lowerCase.text.indexOf(word)).filter(at => at >= 0)
  const firstMatch = Math.min(...matches, text.length)
  const minStart = firstMatch === text.length ? 0 : Math.max(0, firstMatch - EXCERPT_LENGTH / 3)
  const start = minStart === 0 ? 0 : Math.min(firstMatch, text.indexOf(' ', minStart) + 1 || firstMatch)
  const maxEnd = start + EXCERPT_LENGTH
  const lastSpace = maxEnd < text.length ? text.lastIndexOf(' ', maxEnd) : text.length
  const isAfterMatch = lastSpace > (firstMatch === text.length ? start : Math.max(start, firstMatch))
  const end = isAfterMatch ? lastSpace : maxEnd
  return html`${start > 0 ? '… ' : ''}${markWords(text.slice(start, end), words)}${end < text.length ? ' …' : ''}`
}

function markWords(text: string, words: readonly string[]): Html {
  const lowerText = text.toLowerCase()
  const parts: (string | Html)[] = []
  let at = 0
  while (at < text.length) {
    const nextMatch = words
      .map(word => ({ word, start: lowerText.indexOf(word, at) }))
      .filter(({ start }) => start >= 0)
      .sort((one, other) => one.start - other.start)[0]
    if (!nextMatch) break
    const { start, word } = nextMatch
    const end = start + word.length
    parts.push(text.slice(at, start), html`<mark>${text.slice(start, end)}</mark>`)
    at = end
  }
  return html`${parts}${text.slice(at)}`
}
