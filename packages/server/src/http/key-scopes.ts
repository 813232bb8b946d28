import { MAX_SCOPE_LENGTH, MAX_SCOPES, SCOPES, scopeProblem } from '@keyway/sdk/protocol'
import { z } from 'zod'
import { expected, text } from './body-fields.ts'

export const scope = text('a scope', 'agent:connect').superRefine((value, context) => {
  const problem = scopeProblem(value)
  if (problem) context.addIssue({ code: 'custom', message: problem })
})

/**
 * An empty list means unrestricted, and so does an omitted one where a body makes the field optional. Null is refused:
 * it could be meant as "no rights".
 */
export const scopes = z
  .array(scope, { error: expected('a list of scopes (omit it for all permissions)', '["agent:connect"]') })
  .max(MAX_SCOPES, { error: `must have at most ${MAX_SCOPES} entries` })
  .transform(list => [...new Set(list)])
  .meta({
    description: `Scopes that Keyway knows: ${Object.keys(SCOPES).join(', ')}; others are the operator's own, at most ${MAX_SCOPE_LENGTH} characters. Omitted or empty: all permissions.`,
    examples: [['agent:connect']],
  })
