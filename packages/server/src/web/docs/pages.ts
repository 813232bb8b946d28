import { html, raw } from 'hono/html'
import { texts } from '../../languages/current.ts'
import type { PageContext, PageKit } from '../kit.ts'
import type { Html } from '../layout.ts'
import { notFound } from '../problem.ts'
import { type ApiDocument, isForOperators, type Operation, operationsOf } from './api-document.ts'
import { renderError, renderErrors } from './errors.ts'
import { type Docs, mayReadOperatorDocs, operationPath, renderInFrame } from './frame.ts'
import { createLibrary, GUIDES, type Guide } from './library.ts'
import { renderOperation, renderTag } from './reference.ts'
import { createSearch } from './search.ts'
import { makeCall, type TriedCall, tryForm } from './try.ts'

type PageResponse = Response | Promise<Response>

/** The handlers of /docs and /errors. */
export interface DocsHandlers {
  guide(c: PageContext): PageResponse
  tag(c: PageContext): PageResponse
  operation(c: PageContext): PageResponse
  /** Runs the call that a form describes. */
  makeCall(c: PageContext): PageResponse
  /** Redirects to a sign-in, which returns to the call. */
  signIn(c: PageContext): PageResponse
  search(c: PageContext): PageResponse
  errors(c: PageContext): PageResponse
  error(c: PageContext): PageResponse
}

/** Depth of the headings that a guide's table of contents lists. */
const LISTED_DEPTH = 2
/** A guide with fewer sections has no table of contents. */
const MIN_LISTED_SECTIONS = 3

export function createDocsHandlers(kit: PageKit): DocsHandlers {
  const document = kit.api.document() as ApiDocument
  const docs: Docs = { kit, operations: operationsOf(document) }
  const library = createLibrary(kit.publicUrl)

  return {
    guide: c => renderGuide(c, c.req.param('page') ?? GUIDES[0]!.slug),
    tag: c => renderTag(docs, document, c, c.req.param('tag')!) ?? throwNotFound(),
    operation: c => renderCall(c, findOperation(c), null),
    async makeCall(c) {
      const operation = findOperation(c)
      if (!kit.api.mayTry(operation.operationId)) throw notFound()
      return renderCall(c, operation, await makeCall(docs, c, operation))
    },
    signIn(c) {
      kit.cookies.rememberDestination(c, operationPath(findOperation(c)))
      return c.redirect('/sign-in', 303)
    },
    search: createSearch(docs, library),
    errors: c => renderErrors(docs, c),
    error: c => renderError(docs, c, c.req.param('code')!) ?? throwNotFound(),
  }

  function renderGuide(c: PageContext, slug: string): PageResponse {
    const guide = GUIDES.find(each => each.slug === slug)
    if (!guide || (guide.group === 'operators' && !mayReadOperatorDocs(c))) throw notFound()
    const { title, html: content, sections } = library.read(guide)
    const listedSections = sections.filter(({ depth }) => depth === LISTED_DEPTH)
    const contentsList =
      listedSections.length < MIN_LISTED_SECTIONS
        ? ''
        : html`<nav class="on-page" aria-labelledby="on-page"><div><p id="on-page">${texts.docs.onThisPage}</p><ul>${listedSections.map(({ anchor, heading }) => html`<li><a href="#${anchor}">${heading}</a></li>`)}</ul></div></nav>`
    // The guide is marked as English, since the page around it may be in another language.
    const [lead, rest] = splitAtSection(content)
    const body = html`<div lang="en" dir="ltr"><h1>${title}</h1>${raw(lead)}${contentsList}${raw(rest)}</div>${neighbourLinks(guide)}`
    return renderInFrame(docs, c, { title: guide.label, body, current: `/docs/${slug}` })
  }

  function findOperation(c: PageContext): Operation {
    const operation = docs.operations.find(({ operationId }) => operationId === c.req.param('operation'))
    if (!operation || (isForOperators(operation.tag) && !mayReadOperatorDocs(c))) throw notFound()
    return operation
  }

  function renderCall(c: PageContext, operation: Operation, tried: TriedCall | null): PageResponse {
    return renderOperation(docs, document, c, operation, tryForm(docs, c, operation, tried))
  }
}

function splitAtSection(content: string): [lead: string, rest: string] {
  const at = content.indexOf('<h2')
  return at < 0 ? [content, ''] : [content.slice(0, at), content.slice(at)]
}

function neighbourLinks(guide: Guide): Html {
  const group = GUIDES.filter(each => each.group === guide.group)
  const at = group.indexOf(guide)
  const link = (to: Guide | undefined, rel: 'prev' | 'next') =>
    to ? html`<a href="/docs/${to.slug}" rel="${rel}">${to.label}</a>` : ''
  return html`<nav class="neighbours" aria-label="${texts.docs.guides}">${link(group[at - 1], 'prev')}${link(group[at + 1], 'next')}</nav>`
}

function throwNotFound(): never {
  throw notFound()
}
