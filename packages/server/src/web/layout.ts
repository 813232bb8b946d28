import { html, raw } from 'hono/html'
import { type Brand, isMark } from '../brand/brand.ts'
import { MARK_DRAWING } from '../brand/mark.ts'
import { type Instant, SECOND } from '../clock.ts'
import { localization, texts } from '../languages/current.ts'
import type { User } from '../users/user.ts'
import type { Assets, LogoAsset } from './assets.ts'
import type { Html } from './html.ts'
import { languageLink } from './language-choice.ts'
import { type ThemeChoice, themeForm } from './theme-choice.ts'

export type { Html }

/** The parts that are the same on every page. */
export interface Shell {
  productName: string
  assets: Assets
  brand: Pick<Brand, 'logo' | 'links'>
  supportEmail: string
}

export interface PageOptions {
  title: string
  /** The signed-in person, whose navigation is shown; null if nobody is signed in or the page has no navigation. */
  user: User | null
  formToken: string
  /** Whether the client may open the local inbox. */
  showsInbox: boolean
  /** Path of the current entry of the navigation. */
  current?: string
  /** Announced politely to screen readers (`role="status"`). Not shown if the page has a `problem`. */
  notice?: string | null
  /** Announced immediately (`role="alert"`). */
  problem?: string | null
  /** Whether the page belongs to the documentation, which has additional styles. */
  isDocumentation?: boolean
  /** Whether a field of the page's form shows a problem. */
  isRefused?: boolean
  theme: ThemeChoice
  /** The path to return to after changing the language or the theme; null if they cannot be changed on this page. */
  returnTo: string | null
  /**
   * The path of the page with the form. It is used as `returnTo` where the requested page cannot be loaded again, as in
   * the response to a POST.
   */
  formAt?: string
  /** Reload interval in seconds if no script runs. */
  refreshSeconds?: number | null
}

/**
 * A complete page that works without scripts. Browsers that support `rel="expect"` paint it only when all of it has
 * arrived: otherwise a slow machine paints a part of it first, and the footer at the bottom of the window moves as the
 * page grows.
 */
export function page(shell: Shell, options: PageOptions, body: Html): Html {
  const { user, title, problem, notice, theme } = options
  const { tag, direction } = localization()
  const { style, adminStyle, docsStyle, script, favicon, touchIcon } = shell.assets
  return html`<!doctype html>
<html lang="${tag}" dir="${direction}"${theme === 'system' ? '' : html` data-theme="${theme}"`}>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="${theme === 'system' ? 'light dark' : theme}">
${themeColor(theme, isWide(options))}
<meta name="robots" content="noindex">
<title>${problem || options.isRefused ? texts.units.labelled({ label: texts.errors.problem, value: title }) : title} · ${shell.productName}</title>
<link rel="icon" href="${favicon.url}" type="${favicon.type}">
<link rel="apple-touch-icon" href="${touchIcon.url}">
<link rel="stylesheet" href="${options.current?.startsWith('/admin') ? adminStyle.url : style.url}">
${options.isDocumentation ? html`<link rel="stylesheet" href="${docsStyle.url}">` : ''}
<link rel="expect" href="#page-end" blocking="render">
<script type="module" src="${script.url}"></script>
${options.refreshSeconds ? html`<noscript><meta http-equiv="refresh" content="${options.refreshSeconds}"></noscript>` : ''}
</head>
<body class="${isWide(options) ? 'app' : 'gate'}" data-just-now="${texts.units.justNow}"${user ? raw(' data-signed-in') : ''}>
<a class="skip" href="#main">${texts.nav.skip}</a>
<header class="top">
<a class="brand" href="/">${brandMark(shell, theme)}</a>
${user ? navigation(options) : ''}
${user ? signOutForm(user, options.formToken) : isWide(options) ? html`<a class="sign-out" href="/sign-in">${texts.nav.signIn}</a>` : ''}
</header>
<main id="main" tabindex="-1">
${problem ? html`<p class="banner problem" role="alert">${problem}</p>` : ''}
${notice && !problem ? html`<p class="banner notice" role="status">${notice}</p>` : ''}
${body}
</main>
${footer(shell, options)}
<div id="page-end" hidden></div>
</body>
</html>`
}

/** Whether the layout is wide, as for signed-in people, the inbox and the documentation. */
function isWide({ user, current }: PageOptions): boolean {
  return user !== null || current === '/inbox' || current === '/docs'
}

/** The background of the top of the page, as in base.css: `app` is the wide layout, `gate` the narrow one. */
const TOP_COLORS = {
  app: { light: '#ffffff', dark: '#171b22' },
  gate: { light: '#f6f7f9', dark: '#0f1217' },
} as const

/** The colour of the browser's toolbar. */
function themeColor(theme: ThemeChoice, isWide: boolean): Html {
  const { light, dark } = TOP_COLORS[isWide ? 'app' : 'gate']
  if (theme !== 'system') return html`<meta name="theme-color" content="${theme === 'light' ? light : dark}">`
  return html`<meta name="theme-color" content="${light}" media="(prefers-color-scheme: light)">
<meta name="theme-color" content="${dark}" media="(prefers-color-scheme: dark)">`
}

/** The operator's or the default logo, followed by the product's name unless the logo contains it. */
function brandMark({ productName, assets: { logo, logoDark }, brand }: Shell, theme: ThemeChoice): Html {
  if (!logo || !brand.logo) return html`${mark}<span>${productName}</span>`
  const logoHasName = !isMark(brand.logo)
  const alt = logoHasName ? productName : ''
  const image = (file: LogoAsset) =>
    html`<img class="logo" src="${file.url}" width="${Math.round(file.width)}" height="${Math.round(file.height)}" alt="${alt}">`
  const logoImage = html`${
    theme === 'system' && logoDark
      ? html`<picture><source srcset="${logoDark.url}" media="(prefers-color-scheme: dark)">${image(logo)}</picture>`
      : image(theme === 'dark' ? (logoDark ?? logo) : logo)
  }`
  return logoHasName ? logoImage : html`${logoImage}<span>${productName}</span>`
}

function footer({ brand: { links }, supportEmail }: Shell, options: PageOptions): Html {
  const { nav } = texts
  const entries: [string, string | null][] = [
    ['/docs', nav.docs],
    [links.terms ?? '', links.terms && nav.terms],
    [links.privacy ?? '', links.privacy && nav.privacy],
    [links.support ?? `mailto:${encodeURI(supportEmail)}`, nav.support],
    ['/inbox', options.showsInbox && !isWide(options) ? nav.localInbox : null],
  ]
  return html`<footer class="foot">
<nav aria-label="${nav.more}">${entries.map(([url, label]) => (label ? html`<a href="${url}">${label}</a>` : ''))}</nav>
${options.returnTo === null ? '' : preferences(options, options.returnTo)}
</footer>`
}

/** The choices of language and theme. Pages of administrators, and /language itself, have no link to languages. */
function preferences({ current = '', theme, formToken: token }: PageOptions, returnTo: string): Html {
  const showsLanguageLink = !current.startsWith('/admin') && !returnTo.startsWith('/language')
  return html`<div class="preferences">${showsLanguageLink ? languageLink(returnTo) : ''}${themeForm(theme, returnTo, formToken(token))}</div>`
}

function navigation({ current, showsInbox, user }: PageOptions): Html {
  const entries: [string, string][] = [
    ['/keys', texts.nav.keys],
    ['/agents', texts.nav.agents],
    ['/sessions', texts.nav.sessions],
    ['/account', texts.nav.account],
  ]
  if (user && user.role !== 'user') entries.push(['/admin', texts.nav.admin])
  if (showsInbox) entries.push(['/inbox', texts.nav.inbox])
  return html`<nav class="tabs" aria-label="${texts.nav.main}">${entries.map(([path, label]) => html`<a href="${path}"${current === path ? raw(' aria-current="page"') : ''}>${label}</a>`)}</nav>`
}

function signOutForm(user: User, token: string): Html {
  return html`<form method="post" action="/sign-out" class="sign-out"><span class="who" title="${user.email}">${user.email}</span>${formToken(token)}<button class="plain">${texts.nav.signOut}</button></form>`
}

export function pageHead(title: string, lead: Html | string, action: Html | '' = ''): Html {
  return html`<div class="head"><div><h1>${title}</h1><p class="lead">${lead}</p></div>${action}</div>`
}

export function factList(rows: readonly (readonly [label: string, value: Html | string])[]): Html {
  return html`<dl class="facts">${rows.map(([label, value]) => html`<div><dt>${label}</dt><dd>${value}</dd></div>`)}</dl>`
}

/** The placeholder of an empty list, with what can be done about it. */
export function emptyList(title: string, lead: string, actions: Html | '' = ''): Html {
  return html`<div class="empty">${mark}<strong>${title}</strong><p>${lead}</p>${actions}</div>`
}

export function formToken(token: string): Html {
  return html`<input type="hidden" name="form_token" value="${token}">`
}

/** A formatted instant; script.js converts it to the reader's time zone and language. */
export function time(instant: Instant): Html {
  const iso = new Date(instant).toISOString()
  return html`<time datetime="${iso}">${localization().dateAndTime(instant)}</time>`
}

/**
 * A relative time ("5 minutes ago") with the exact time as title. script.js updates it, and formats the title for the
 * reader's time zone and language.
 */
export function ago(instant: Instant, now: Instant): Html {
  const iso = new Date(instant).toISOString()
  const seconds = Math.max(0, Math.round((now - instant) / SECOND))
  return html`<time datetime="${iso}" title="${localization().dateAndTime(instant)}" data-age="${seconds}">${localization().ago(seconds)}</time>`
}

/** A formatted date; script.js converts it to the reader's time zone and language, and adds the full time as title. */
export function day(instant: Instant): Html {
  const iso = new Date(instant).toISOString()
  return html`<time class="day" datetime="${iso.slice(0, 16)}Z">${localization().date(instant)}</time>`
}

/** The default logo, a key, in the colours of the page's theme. */
export const mark = raw(
  `<svg class="mark" viewBox="0 0 32 32" aria-hidden="true" focusable="false"><rect x="2" y="2" width="28" height="28" rx="8"/><g>${MARK_DRAWING}</g></svg>`,
)
