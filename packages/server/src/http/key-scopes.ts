import { MAX_SCOPE_LENGTH, MAX_SCOPES, SCOPES, scopeProblem } from '@keyway/sdk/protocol'
import { z } from 'zod'
import { expected, text } from './body-fields.ts'

export const scope = text('a scope', 'agent:connect').superRefine((value, context) => {
  const problem = scopeProblem(value)
  if (problem) context.addIssue({ code: 'custom', message: problem })
})

/**
 * @param howToGetAll how to ask for all permissions, in the error for a value that is no list
 * @param meaningOfNone the sentence of the description that says what a list without scopes means
 */
function scopeList(howToGetAll: string, meaningOfNone: string) {
  return z
    .array(scope, { error: expected(`a list of scopes (${howToGetAll})`, '["agent:connect"]') })
    .max(MAX_SCOPES, { error: `must have at most ${MAX_SCOPES} entries` })
    .transform(list => [...new Set(list)])
    .meta({
      description: `Scopes that Keyway knows: ${Object.keys(SCOPES).join(', ')}; others are the operator's own, at most ${MAX_SCOPE_LENGTH} characters. ${meaningOfNone}`,
      examples: [['agent:connect']],
    })
}

/**
 * An empty list means unrestricted, and so does an omitted one where a body makes the field optional. Null is refused:
 * it could be meant as "no rights".
 */
export const scopes = scopeList('omit it for all permissions', 'Omitted or empty: all permissions.')

/** The scopes of an imported key, which must be stated, so that no row gets all permissions by an omission. */
export const importedScopes = scopeList(
  '[] for all permissions',
  'Required; an empty list means all permissions.',
)
