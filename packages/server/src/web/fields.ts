import { html, raw } from 'hono/html'
import type { Html } from './layout.ts'

/** A problem of a form, to be shown at the field with this name. */
export interface FieldProblem {
  field: string
  message: string
}

/**
 * The attributes of a field. A refused field is marked as invalid, described by its problem, and focused.
 *
 * @param hintId the id of the text that describes the field whether or not it was refused
 */
export function fieldState(name: string, problem: FieldProblem | null | undefined, hintId = ''): Html {
  const isRefused = problem?.field === name
  const describedBy = [isRefused ? problemId(name) : '', hintId].filter(Boolean).join(' ')
  const description = describedBy ? ` aria-describedby="${describedBy}"` : ''
  return raw(`${description}${isRefused ? ' aria-invalid="true" autofocus' : ''}`) as unknown as Html
}

/** The message at a field, if the problem is that field's; otherwise empty. */
export function fieldProblem(name: string, problem: FieldProblem | null | undefined): Html | '' {
  if (problem?.field !== name) return ''
  return html`<p class="wrong" id="${problemId(name)}" role="alert">${problem.message}</p>`
}

function problemId(name: string): string {
  return `${name}-problem`
}
