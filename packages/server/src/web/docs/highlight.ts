import { html } from 'hono/html'
import type { Html } from '../layout.ts'

/** The kinds of highlighted tokens, which are also the CSS class names. */
type Kind = 'comment' | 'string' | 'keyword' | 'variable'

interface Syntax {
  /** The characters that start a comment up to the end of the line; null if the language has no such comments. */
  comment: string | null
  quotes: string
  keywords: ReadonlySet<string>
  /** Whether the language is a data format: a string before a colon is a field name, and numbers are values. */
  isData?: boolean
}

const wordSet = (text: string) => new Set(text.split(' '))

const SYNTAXES: Readonly<Record<string, Syntax>> = {
  sh: { comment: '#', quotes: `'"`, keywords: wordSet('until do done if then fi') },
  ts: {
    comment: '//',
    quotes: '\'"`',
    keywords: wordSet(
      'async await const else export false for function if import let new null return throw true type undefined while',
    ),
  },
  python: {
    comment: '#',
    quotes: `'"`,
    keywords: wordSet(
      'and as async await def else except False for from if import in lambda None not or raise return True try while with',
    ),
  },
  json: { comment: null, quotes: '"', keywords: wordSet('true false null'), isData: true },
}
const ALIASES: Readonly<Record<string, string>> = { js: 'ts', bash: 'sh' }

/**
 * Highlights the syntax of code as far as our own examples need it: a complete library is larger than the
 * documentation. Code in unknown languages is not highlighted.
 */
export function highlight(language: string, text: string): Html {
  const syntax = SYNTAXES[ALIASES[language] ?? language]
  if (!syntax) return html`${text}`
  const parts: (string | Html)[] = []
  let plainStart = 0
  for (let at = 0; at < text.length; ) {
    const { end, kind } = tokenAt(syntax, text, at)
    if (kind) {
      parts.push(text.slice(plainStart, at), html`<span class="${kind}">${text.slice(at, end)}</span>`)
      plainStart = end
    }
    at = end
  }
  return html`${parts}${text.slice(plainStart)}`
}

const WORD = /[\w$]+/y

function tokenAt(syntax: Syntax, text: string, at: number): { end: number; kind: Kind | null } {
  if (syntax.comment && text.startsWith(syntax.comment, at) && /^\s?$/.test(text[at - 1] ?? '')) {
    const end = text.indexOf('\n', at)
    return { end: end < 0 ? text.length : end, kind: 'comment' }
  }
  if (syntax.quotes.includes(text[at]!)) {
    const end = endOfString(text, at)
    return { end, kind: syntax.isData && text[end] === ':' ? 'variable' : 'string' }
  }
  WORD.lastIndex = at
  const word = WORD.exec(text)?.[0]
  if (!word) return { end: at + 1, kind: null }
  const isValue = syntax.keywords.has(word) || (syntax.isData && /^\d/.test(word))
  return { end: at + word.length, kind: isValue ? 'keyword' : /^\$\w/.test(word) ? 'variable' : null }
}

/** The index after the closing quote, or the end of the text. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === text[start]) return at + 1
  }
  return text.length
}
