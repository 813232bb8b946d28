import { html, raw } from 'hono/html'
import { localization, texts } from '../languages/current.ts'
import { LANGUAGES } from '../languages/languages.ts'
import type { Html } from './html.ts'

/** The link to /language in the footer: buttons for all languages would make every page much larger. */
export function languageLink(returnTo: string): Html {
  const { language } = localization()
  const query = new URLSearchParams({ return_to: returnTo })
  return html`<a href="/language?${query}">${texts.units.labelled({ label: texts.nav.language, value: LANGUAGES[language].name })}</a>`
}

export function languageForm(returnTo: string, token: Html): Html {
  const { language: current } = localization()
  const buttons = Object.entries(LANGUAGES).map(
    ([language, { name, tag, direction }]) =>
      html`<button class="second" name="language" value="${language}" lang="${tag}" dir="${direction}"${language === current ? raw(' aria-current="true"') : ''}>${name}</button>`,
  )
  return html`<form method="post" action="/language" class="languages">${token}<input type="hidden" name="return_to" value="${returnTo}">${buttons}</form>`
}

export function accountLanguageForm(token: Html): Html {
  const { language: current } = localization()
  const options = Object.entries(LANGUAGES).map(
    ([language, { name, tag }]) =>
      html`<option value="${language}" lang="${tag}"${language === current ? raw(' selected') : ''}>${name}</option>`,
  )
  return html`<form method="post" action="/language" class="inline">${token}<input type="hidden" name="return_to" value="/account?done=language_changed"><div class="field"><label for="language">${texts.nav.language}</label><select id="language" name="language" aria-describedby="language-hint">${options}</select></div><button class="second">${texts.account.save}</button><p class="hint" id="language-hint">${texts.account.languageLead}</p></form>`
}
