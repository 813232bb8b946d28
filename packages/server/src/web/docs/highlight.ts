import { html } from 'hono/html'
import type { Html } from '../layout.ts'

/** What is told apart in code; the names of the style's classes. */
type Kind = 'comment' | 'string' | 'keyword' | 'variable'

const DOUBLE = /"(?:[^"\\\n]|\\.)*"/
const SINGLE = /'(?:[^'\\\n]|\\.)*'/

/** In the order in which they are tried. */
const RULES: Readonly<Record<string, readonly [Kind, RegExp][]>> = {
  sh: [
    ['comment', /(?<=^|\s)#[^\n]*/],
    ['string', /'[^']*'/],
    ['string', /"(?:[^"\\]|\\.)*"/],
    ['variable', /\$\w+/],
  ],
  ts: [
    ['comment', /\/\/[^\n]*/],
    ['string', SINGLE],
    ['string', DOUBLE],
    ['string', /`[^`]*`/],
    [
      'keyword',
      /\b(?:async|await|const|else|export|for|from(?= ['"])|function|if|import|let|new|null|of|return|throw|true|false|type|undefined|while)\b/,
    ],
  ],
  python: [
    ['comment', /#[^\n]*/],
    ['string', DOUBLE],
    ['string', SINGLE],
    [
      'keyword',
      /\b(?:and|as|async|await|def|else|except|False|for|from|if|import|in|lambda|None|not|or|raise|return|True|try|while|with)\b/,
    ],
  ],
  json: [
    ['variable', /"(?:[^"\\\n]|\\.)*"(?=\s*:)/],
    ['string', DOUBLE],
    ['keyword', /\b(?:true|false|null|-?\d[\d.]*)\b/],
  ],
}
const ALIASES: Readonly<Record<string, string>> = { js: 'ts', bash: 'sh', jsonc: 'json' }

/**
 * Code with its parts in colours, as coarse as our own examples allow: a library that knows all of a language is larger than
 * the documents. A language that is not known stays as it is.
 */
export function highlighted(language: string, text: string): Html {
  const rules = RULES[ALIASES[language] ?? language]
  if (!rules) return html`${text}`
  const any = new RegExp(rules.map(([, { source }]) => `(${source})`).join('|'), 'gm')
  const parts: (string | Html)[] = []
  let end = 0
  for (const match of text.matchAll(any)) {
    const kind = rules[match.slice(1).findIndex(group => group !== undefined)]![0]
    parts.push(text.slice(end, match.index), html`<span class="${kind}">${match[0]}</span>`)
    end = match.index + match[0].length
  }
  return html`${parts}${text.slice(end)}`
}
