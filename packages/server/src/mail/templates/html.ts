import { type Brand, imagePath, isMark } from '../../brand/brand.ts'
import type { AccentColors } from '../../brand/colors.ts'
import type { Localization } from '../../languages/localization.ts'
import type { Block, TemplatedMail } from './templates.ts'

class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

type TemplateValue = string | number | Html | Html[]

const ESCAPES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Escapes every interpolated string and number; `Html` is inserted unchanged. */
function html(strings: TemplateStringsArray, ...values: TemplateValue[]): Html {
  return new Html(strings.reduce((text, string, index) => text + toHtml(values[index - 1]!) + string))
}

function toHtml(value: TemplateValue): string {
  if (value instanceof Html) return value.text
  if (Array.isArray(value)) return value.map(each => each.text).join('')
  return String(value).replace(/[&<>"']/g, character => ESCAPES[character] ?? character)
}

/**
 * Fonts, width and colours of all mails. The colours are those of the pages; the operator's accent colour is added to
 * them. Text has a contrast of 4.5:1 or more.
 */
const THEME = {
  font: "-apple-system, BlinkMacSystemFont, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif",
  mono: "ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', monospace",
  /** Width of a mail in pixels, which every mail program can show. */
  width: 600,
  light: {
    page: '#f6f7f9',
    card: '#ffffff',
    border: '#e4e7ed',
    text: '#181c25',
    muted: '#596171',
    panel: '#f3f4f8',
  },
  dark: {
    page: '#0f1217',
    card: '#171b22',
    border: '#2a313c',
    text: '#edf0f6',
    muted: '#a4adbc',
    panel: '#212733',
  },
} as const

const { light, dark, font, mono, width } = THEME

type Direction = Localization['direction']

/** What all mails show of the product and its operator. */
export interface MailProduct {
  name: string
  supportEmail: string
  publicUrl: string
  brand: Brand
  linkLabels: { terms: string; privacy: string }
}

/**
 * Renders a mail as HTML, with tables and inline styles, since many mail programs remove other markup; the style sheet
 * only has the dark colours and the margins for phones. Loads nothing from the network but the operator's logo.
 */
export function renderHtml(
  mail: TemplatedMail,
  product: MailProduct,
  { tag, direction }: Pick<Localization, 'tag' | 'direction'>,
): string {
  const { accent } = product.brand
  return html`<!doctype html>
<html lang="${tag}" dir="${direction}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="supported-color-schemes" content="light dark">
<meta name="format-detection" content="telephone=no, date=no, address=no, email=no, url=no">
<title>${mail.subject}</title>
<style>${new Html(styleSheet(accent.dark))}</style>
</head>
<body class="page" style="margin:0;padding:0;background-color:${light.page};-webkit-text-size-adjust:100%">
<div style="display:none;max-height:0;overflow:hidden;mso-hide:all">${mail.preheader}${PADDING}</div>
<table role="presentation" class="page" width="100%" cellpadding="0" cellspacing="0" border="0" style="background-color:${light.page}">
<tr><td class="around" align="center" style="padding:32px 16px">
<table role="presentation" dir="${direction}" width="100%" cellpadding="0" cellspacing="0" border="0" style="max-width:${width}px">
<tr><td style="padding:0 4px 20px">${renderWordmark(product)}</td></tr>
<tr><td class="card" style="padding:40px 40px 20px;background-color:${light.card};border:1px solid ${light.border};border-radius:12px;font-family:${font}">
<h1 class="text" style="margin:0 0 16px;font-size:24px;line-height:1.3;font-weight:600;text-wrap:balance;color:${light.text}">${mail.heading}</h1>
${mail.body.map(block => renderBlock(block, accent.light, direction))}
${mail.notes.map(renderNote)}
${mail.body.map(renderButtonUrl)}
</td></tr>
<tr><td class="muted" style="padding:20px 4px 0;font-family:${font};font-size:13px;line-height:1.5;color:${light.muted}">
${supportLine(mail, product)}${operatorLinks(product)}
</td></tr>
</table>
</td></tr>
</table>
</body>
</html>
`.text
}

function supportLine({ support }: TemplatedMail, { supportEmail, brand: { accent } }: MailProduct): Html {
  const [before, after] = support({ support: ADDRESS_MARK }).split(ADDRESS_MARK)
  return html`${before!}<a class="link" href="mailto:${supportEmail}" style="color:${accent.light.accent}">${supportEmail}</a>${after!}`
}

/** Marks where the support address is in its sentence: a private-use character, which no text contains. */
const ADDRESS_MARK = '\uE000'

function operatorLinks({ brand: { accent, links }, linkLabels }: MailProduct): Html {
  const linkNames = (['terms', 'privacy'] as const).filter(name => links[name] !== null)
  if (linkNames.length === 0) return html``
  return html`<br>${linkNames.map((name, at) => html`${at > 0 ? ' · ' : ''}<a class="link" href="${links[name]!}" style="color:${accent.light.accent}">${linkLabels[name]}</a>`)}`
}

/** Maximum size of the logo in pixels. */
const MAX_LOGO_HEIGHT = 32
const MAX_LOGO_WIDTH = 280

/**
 * The operator's logo if it is a PNG, which every mail program shows; otherwise the product's initial in a square. The
 * product's name follows, unless the logo contains it.
 */
function renderWordmark(product: MailProduct): Html {
  const { logo } = product.brand
  if (logo?.type !== 'image/png') return renderInitial(product)
  const scale = Math.min(MAX_LOGO_HEIGHT / logo.height, MAX_LOGO_WIDTH / logo.width)
  const [logoWidth, logoHeight] = [Math.round(logo.width * scale), Math.round(logo.height * scale)]
  const hasName = !isMark(logo)
  const image = html`<img src="${product.publicUrl}${imagePath('logo', logo)}" width="${logoWidth}" height="${logoHeight}" alt="${hasName ? product.name : ''}" border="0" style="display:block;border:0">`
  return html`<table role="presentation" cellpadding="0" cellspacing="0" border="0"><tr>
<td class="logo">${image}</td>
${hasName ? '' : nameCell(product)}</tr></table>`
}

function nameCell(product: MailProduct): Html {
  return html`<td class="text" style="padding:0 10px;font-family:${font};font-size:17px;font-weight:600;color:${light.text}">${product.name}</td>
`
}

function renderInitial(product: MailProduct): Html {
  const { accent, ink } = product.brand.accent.light
  return html`<table role="presentation" cellpadding="0" cellspacing="0" border="0"><tr>
<td class="accent" aria-hidden="true" align="center" width="32" height="32" style="width:32px;height:32px;background-color:${accent};border-radius:8px;font-family:${font};font-size:18px;line-height:32px;font-weight:700;color:${ink}">${[...product.name][0]?.toUpperCase() ?? ''}</td>
${nameCell(product)}</tr></table>`
}

function renderBlock(block: Block, accent: AccentColors, direction: Direction): Html {
  switch (block.kind) {
    case 'paragraph':
      return html`<p class="text" style="margin:0 0 24px;font-size:16px;line-height:1.55;color:${light.text}">${block.text}</p>`
    case 'button':
      return renderButton(block, accent)
    case 'code':
      return renderCode(block)
    case 'facts':
      return renderFacts(block.rows, direction)
  }
}

function renderButton(
  { label, url }: Extract<Block, { kind: 'button' }>,
  { accent, ink }: AccentColors,
): Html {
  return html`<table role="presentation" cellpadding="0" cellspacing="0" border="0" style="margin:0 0 28px"><tr>
<td class="accent" align="center" bgcolor="${accent}" style="background-color:${accent};border-radius:8px">
<a class="accent" href="${url}" style="display:inline-block;padding:14px 28px;border-radius:8px;background-color:${accent};font-family:${font};font-size:16px;line-height:20px;font-weight:600;color:${ink};text-decoration:none">${label}</a>
</td></tr></table>`
}

/** The URL of a button as text, at the end of the mail, since few readers need it. */
function renderButtonUrl(block: Block): Html {
  if (block.kind !== 'button' || block.urlLabel === null) return html``
  return html`<table role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0" style="margin:24px 0 12px"><tr>
<td class="line" style="padding-top:20px;border-top:1px solid ${light.border}">
<p class="muted" style="margin:0 0 4px;font-size:13px;line-height:1.5;color:${light.muted}">${block.urlLabel}</p>
<p class="muted" dir="ltr" style="margin:0;font-family:${mono};font-size:12px;line-height:1.6;color:${light.muted};word-break:break-all;overflow-wrap:anywhere">${block.url}</p>
</td></tr></table>`
}

/** Separates the two groups of digits by padding instead of a space, so that the copied code has no space. */
function renderCode({ label, code }: Extract<Block, { kind: 'code' }>): Html {
  const half = Math.ceil(code.length / 2)
  return html`<table role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0" style="margin:0 0 28px"><tr>
<td class="panel" align="center" style="padding:18px 16px 20px;background-color:${light.panel};border-radius:8px">
<p class="muted" style="margin:0 0 8px;font-size:13px;line-height:1.5;color:${light.muted}">${label}</p>
<p class="text" dir="ltr" style="margin:0;font-family:${mono};font-size:28px;line-height:1.2;font-weight:600;letter-spacing:3px;white-space:nowrap;color:${light.text}"><span>${code.slice(0, half)}</span><span style="padding-left:14px">${code.slice(half)}</span></p>
</td></tr></table>`
}

function renderFacts(rows: [string, string][], direction: Direction): Html {
  // Uses HTML attributes and physical sides (left, right), which every mail program understands.
  const [start, padding] = direction === 'rtl' ? ['right', '10px 0 10px 16px'] : ['left', '10px 16px 10px 0']
  return html`<table class="panel" width="100%" cellpadding="0" cellspacing="0" border="0" style="margin:0 0 24px;background-color:${light.panel};border-radius:8px">
${rows.map(
  ([label, value]) => html`<tr>
<th class="muted" scope="row" align="${start}" valign="top" style="padding:10px 16px;font-size:14px;line-height:1.5;font-weight:400;white-space:nowrap;color:${light.muted}">${label}</th>
<td class="text" width="100%" valign="top" style="padding:${padding};font-size:14px;line-height:1.5;word-break:break-word;color:${light.text}"><bdi>${value}</bdi></td>
</tr>`,
)}</table>`
}

function renderNote(text: string): Html {
  return html`<p class="muted" style="margin:0 0 8px;font-size:14px;line-height:1.55;color:${light.muted}">${text}</p>
`
}

/** Invisible characters after the preheader, so that the preview does not continue with the body. */
const PADDING = new Html('&#847;&zwnj;&nbsp;'.repeat(60))

const styleSheet = ({ accent, ink }: AccentColors) => `
:root { color-scheme: light dark; supported-color-schemes: light dark }
@media (max-width: 480px) {
  .card { padding: 28px 22px 12px !important }
  .around { padding: 20px 10px !important }
}
@media (prefers-color-scheme: dark) {
  .page { background-color: ${dark.page} !important }
  .card { background-color: ${dark.card} !important; border-color: ${dark.border} !important }
  .panel { background-color: ${dark.panel} !important }
  .line { border-color: ${dark.border} !important }
  .text { color: ${dark.text} !important }
  .muted { color: ${dark.muted} !important }
  .link { color: ${accent} !important }
  .accent { background-color: ${accent} !important; color: ${ink} !important }
  .logo { padding: 4px 6px; background-color: #ffffff; border-radius: 6px }
}
`
