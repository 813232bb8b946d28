import { Marked, type Token, type Tokens } from 'marked'
import { areAlternatives, codeBlock, codeTabs, type Snippet } from './code.ts'

/** A section of a document, for the table of contents and the search. */
export interface Section {
  /** The id of the section's heading; empty for the text before the first heading. */
  anchor: string
  heading: string
  depth: number
  /** The section's text without markup. */
  text: string
}

export interface RenderedDocument {
  title: string
  /** The content without the title. */
  html: string
  sections: Section[]
}

export interface MarkdownOptions {
  /** The URL of a linked file; null if only the text of the link is to be kept. */
  resolveLink(target: string): string | null
  /** Replaces the example address in a text by the service's own. */
  personalize(text: string): string
}

/**
 * Renders a document of the project. HTML in the source is dropped, so that only Markdown can produce tags; images are
 * dropped too. Consecutive code blocks in different languages become tabs.
 */
export function renderMarkdown(source: string, options: MarkdownOptions): RenderedDocument {
  const anchors = new Set<string>()
  const sections: Section[] = []
  const marked = new Marked({
    renderer: {
      html: () => '',
      image: () => '',
      link({ href, tokens }) {
        const url = options.resolveLink(href)
        const text = this.parser.parseInline(tokens)
        return url === null ? text : `<a href="${escapeHtml(url)}">${text}</a>`
      },
      heading({ depth, tokens }) {
        const anchor = sections.findLast(section => section.depth === depth)?.anchor ?? ''
        return `<h${depth} id="${anchor}">${this.parser.parseInline(tokens)}</h${depth}>\n`
      },
      table(token) {
        const renderInline = (cell: Tokens.TableCell) => this.parser.parseInline(cell.tokens)
        const labels = token.header.map(labelOf)
        const head = token.header.map(cell => headerCell(renderInline(cell))).join('')
        const body = token.rows.map(
          cells =>
            `<tr>${cells.map((cell, at) => tableCell(labels[at] ?? '', renderInline(cell))).join('')}</tr>`,
        )
        return `<div class="scroll" tabindex="0"><table class="stacks"><thead><tr>${head}</tr></thead><tbody>${body.join('')}</tbody></table></div>\n`
      },
    },
  })
  const [title, ...tokens] = withoutEmptyBlocks(marked.lexer(options.personalize(source)))
  const parts: string[] = []
  for (let at = 0; at < tokens.length; at++) {
    const token = tokens[at] as Token
    if (token.type === 'heading') sections.push(sectionOf(token as Tokens.Heading, anchors))
    else addText(sections, token)
    const alternatives = alternativesFrom(tokens, at)
    if (alternatives.length > 1) {
      parts.push(String(codeTabs(alternatives, `code-${at}`)))
      at += alternatives.length - 1
    } else if (token.type === 'code')
      parts.push(String(codeBlock(snippetOf(token as Tokens.Code), `code-${at}`)))
    else parts.push(marked.parser([token]))
  }
  return {
    title: title ? (title as Tokens.Heading).text.replaceAll('`', '') : '',
    html: parts.join(''),
    sections,
  }
}

/** An empty header cell is written as a data cell, since a header needs text. */
function headerCell(content: string): string {
  return content === '' ? '<td></td>' : `<th scope="col">${content}</th>`
}

/** @param label the column's name, which narrow screens show before the content; empty for none */
function tableCell(label: string, content: string): string {
  return label === '' || content === '' ? `<td>${content}</td>` : `<td data-label="${label}">${content}</td>`
}

/** A header cell as plain text for an attribute. */
function labelOf({ text }: Tokens.TableCell): string {
  return escapeHtml(text.replace(/[`*]/g, ''))
}

/** All blocks except empty ones and HTML such as comments, so that the first one is the title. */
function withoutEmptyBlocks(tokens: Token[]): Token[] {
  return tokens.filter(({ type }) => type !== 'space' && type !== 'html')
}

/** The code blocks from `start` on that contain the same code in different languages. */
function alternativesFrom(tokens: readonly Token[], start: number): Snippet[] {
  const codes: Snippet[] = []
  for (const token of tokens.slice(start)) {
    if (token.type !== 'code') break
    const code = snippetOf(token as Tokens.Code)
    if (!areAlternatives([...codes, code])) break
    codes.push(code)
  }
  return codes
}

function snippetOf({ lang, text }: Tokens.Code): Snippet {
  return { language: lang ?? '', text }
}

function sectionOf({ depth, text }: Tokens.Heading, usedAnchors: Set<string>): Section {
  const heading = text.replace(/[`*]/g, '')
  const baseAnchor = heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s-]/gu, '')
    .trim()
    .replaceAll(/\s/g, '-')
  let anchor = baseAnchor
  for (let number = 1; usedAnchors.has(anchor); number++) anchor = `${baseAnchor}-${number}`
  usedAnchors.add(anchor)
  return { anchor, heading, depth, text: '' }
}

/** The target of a Markdown link, which follows its text. */
const LINK_TARGET = /\]\([^()[\]\s]*\)/g

function addText(sections: Section[], token: Token): void {
  if (sections.length === 0) sections.push({ anchor: '', heading: '', depth: 1, text: '' })
  sections.at(-1)!.text += ` ${plainText(token)}`.replaceAll(/\s+/g, ' ')
}

function plainText(token: Token): string {
  if (token.type === 'code') return withoutMarkup((token as Tokens.Code).text)
  if (token.type === 'table') return (token as Tokens.Table).rows.map(sentenceOf).join(' ')
  return withoutMarkup(token.raw)
}

/** A row of a table as a sentence, so that an excerpt reads as text: `svc_…: an API key; 190 bits.` */
function sentenceOf(cells: readonly Tokens.TableCell[]): string {
  const [first, ...rest] = cells.map(({ text }) => withoutMarkup(text).trim()).filter(Boolean)
  const sentence = rest.length > 0 ? `${first}: ${rest.join('; ')}` : (first ?? '')
  return /[.!?:]$/.test(sentence) ? sentence : `${sentence}.`
}

function withoutMarkup(text: string): string {
  return text.replace(LINK_TARGET, ']').replace(/[`*#[\]]/g, '')
}

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, character => ESCAPES[character]!)
}
