import { html, raw } from 'hono/html'
import { texts } from '../languages/current.ts'
import type { Html } from './html.ts'

export type ThemeChoice = (typeof THEME_CHOICES)[number]
export const THEME_CHOICES = ['system', 'light', 'dark'] as const

export function themeForm(chosen: ThemeChoice, returnTo: string, token: Html): Html {
  const { theme, themes } = texts.nav
  return html`<form method="post" action="/theme">${token}<input type="hidden" name="return_to" value="${returnTo}"><div class="theme" role="group" aria-label="${theme}">${THEME_CHOICES.map(each => html`<button name="theme" value="${each}" aria-pressed="${raw(String(each === chosen))}">${themes[each]}</button>`)}</div></form>`
}
