import { html } from 'hono/html'
import { texts } from '../../languages/current.ts'
import type { Html } from '../layout.ts'
import { highlight } from './highlight.ts'

export interface Snippet {
  /** The language, as in the info string of a fenced block; empty if it names none, as for output. */
  language: string
  text: string
}

const LANGUAGE_LABELS: Readonly<Record<string, string>> = {
  sh: 'curl',
  js: 'JavaScript',
  ts: 'TypeScript',
  python: 'Python',
}

/** A block of code; in the languages of `LANGUAGE_LABELS` with a copy button, which is shown if scripts run. */
export function codeBlock({ language, text }: Snippet, id: string): Html {
  const { keys } = texts
  const block = html`<pre tabindex="0"><code id="${id}">${highlight(language, text)}</code></pre>`
  if (!(language in LANGUAGE_LABELS)) return html`<div class="code">${block}</div>`
  return html`<div class="code copied">${block}<button type="button" class="second small copy" data-copy="${id}" data-copied="${keys.copied}">${keys.copy}</button></div>`
}

/** Code in several languages as tabs, which are radio buttons, so that no script is needed. */
export function codeTabs(snippets: readonly Snippet[], id: string): Html {
  return html`<fieldset class="code-tabs"><legend class="unseen">${texts.docs.languages}</legend>${snippets.map(
    ({ language }, at) =>
      html`<input type="radio" name="${id}" id="${id}-${language}" value="${language}"${at === 0 ? ' checked' : ''} class="unseen"><label for="${id}-${language}">${LANGUAGE_LABELS[language] ?? language}</label>`,
  )}${snippets.map((snippet, at) => html`<div class="tab">${codeBlock(snippet, `${id}-code-${at}`)}</div>`)}</fieldset>`
}

/** Whether consecutive blocks are taken for the same code: each is in another language of `LANGUAGE_LABELS`. */
export function areAlternatives(snippets: readonly Snippet[]): boolean {
  const languages = snippets.map(({ language }) => language)
  return (
    new Set(languages).size === languages.length && languages.every(language => language in LANGUAGE_LABELS)
  )
}
