import type { MailProduct } from './html.ts'
import type { Block, TemplatedMail } from './templates.ts'

/**
 * Maximum length of a line: less than the 78 characters that RFC 5322 section 2.1.1 recommends, since each reply puts
 * `> ` before a quoted line.
 */
const LINE_LENGTH = 72

/** Renders a mail as plain text (RFC 2046 section 5.1.4). A URL has a line of its own and is never broken. */
export function renderText(mail: TemplatedMail, product: MailProduct): string {
  const parts = [
    wrap(mail.heading),
    ...mail.body.map(renderBlock).filter(text => text !== null),
    ...mail.notes.map(wrap),
    [
      `-- \n${wrap(product.name)}\n${wrap(mail.support({ support: product.supportEmail }))}`,
      ...operatorLinks(product),
    ].join('\n'),
  ]
  return `${parts.join('\n\n')}\n`
}

function operatorLinks({ brand: { links }, linkLabels }: MailProduct): string[] {
  return (['terms', 'privacy'] as const)
    .filter(name => links[name] !== null)
    .map(name => `${linkLabels[name]}: ${links[name]}`)
}

/** Returns null for a button whose URL need not be shown as text. */
function renderBlock(block: Block): string | null {
  switch (block.kind) {
    case 'paragraph':
      return wrap(block.text)
    case 'button':
      return block.urlLabel === null ? null : `${block.label}:\n${block.url}`
    case 'code':
      return `${wrap(block.label)}\n\n    ${block.code}`
    case 'facts':
      return block.rows.map(([label, value]) => wrap(`${label}: ${value}`)).join('\n')
  }
}

function wrap(text: string): string {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(/[ \t\n]+/)) {
    if (line && line.length + 1 + word.length > LINE_LENGTH) {
      lines.push(line)
      line = word
    } else line = line ? `${line} ${word}` : word
  }
  return [...lines, line].join('\n')
}
