import { html, raw } from 'hono/html'
import type { HtmlEscapedString } from 'hono/utils/html'
import type { User } from '../users/user.ts'
import { words } from './words.ts'

export type Html = HtmlEscapedString | Promise<HtmlEscapedString>

export interface Shell {
  productName: string
  hasInbox: boolean
  /** `/assets/style.css?v=…`: the content's hash, so that it can be cached for good. */
  styleUrl: string
  scriptUrl: string
}

export interface PageOptions {
  title: string
  /** Null: nobody is signed in. */
  user: User | null
  formToken: string
  /** The path of the present page's entry in the navigation. */
  current?: string
  /** Said once, politely to screen readers. */
  notice?: string | null
  /** Said at once. */
  problem?: string | null
}

/** One whole page. Everything essential is in it: the script only adds comfort. */
export function page(shell: Shell, options: PageOptions, body: Html): Html {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>${options.title} · ${shell.productName}</title>
<link rel="icon" href="/assets/mark.svg" type="image/svg+xml">
<link rel="stylesheet" href="${shell.styleUrl}">
<script type="module" src="${shell.scriptUrl}"></script>
</head>
<body>
<a class="skip" href="#main">${words.nav.skip}</a>
${header(shell, options)}
<main id="main" class="${options.user ? 'wide' : 'narrow'}">
${options.problem ? html`<p class="banner problem" role="alert">${options.problem}</p>` : ''}
${options.notice ? html`<p class="banner notice" role="status">${options.notice}</p>` : ''}
${body}
</main>
</body>
</html>`
}

function header(shell: Shell, options: PageOptions): Html {
  return html`<header>
<a class="brand" href="/">${mark}<span>${shell.productName}</span></a>
${options.user ? navigation(shell, options) : shell.hasInbox ? html`<nav aria-label="Local"><a href="/inbox" ${currentPage(options, '/inbox')}>${words.nav.inbox}</a></nav>` : ''}
${
  options.user
    ? html`<form method="post" action="/sign-out" class="sign-out"><span class="who" title="${options.user.email}">${options.user.email}</span>${formToken(options.formToken)}<button class="quiet">${words.nav.signOut}</button></form>`
    : ''
}
</header>`
}

function navigation(shell: Shell, options: PageOptions): Html {
  const entries = [
    ['/keys', words.nav.keys],
    ['/agents', words.nav.agents],
    ['/sessions', words.nav.sessions],
    ['/account', words.nav.account],
    ...(shell.hasInbox ? [['/inbox', words.nav.inbox]] : []),
  ] as [string, string][]
  return html`<nav aria-label="Main">${entries.map(([path, label]) => html`<a href="${path}" ${currentPage(options, path)}>${label}</a>`)}</nav>`
}

function currentPage(options: PageOptions, path: string): Html | string {
  return options.current === path ? html`aria-current="page"` : ''
}

export function formToken(token: string): Html {
  return html`<input type="hidden" name="form_token" value="${token}">`
}

/** An instant, as a person reads it; the script puts it into the reader's own zone. */
export function time(instant: number): Html {
  const iso = new Date(instant).toISOString()
  return html`<time datetime="${iso}">${iso.slice(0, 10)} ${iso.slice(11, 16)} UTC</time>`
}

/** A key whose bow is a door: drawn with the text colour so that it follows light and dark. */
export const mark = raw(
  '<svg class="mark" viewBox="0 0 32 32" aria-hidden="true" focusable="false"><rect x="2" y="2" width="28" height="28" rx="8" class="tile"/><circle cx="12.5" cy="16" r="5" class="bow"/><path d="M17.5 16H26M22.5 16v4.5" class="blade"/></svg>',
)

export const markFile =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect x="2" y="2" width="28" height="28" rx="8" fill="#4338ca"/><g fill="none" stroke="#fff" stroke-width="2.6" stroke-linecap="round"><circle cx="12.5" cy="16" r="5"/><path d="M17.5 16H26M22.5 16v4.5"/></g></svg>'
