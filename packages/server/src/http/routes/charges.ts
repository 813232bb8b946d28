import { z } from 'zod'
import { notAuthorized } from '../../billing/charges.ts'
import { parseAmount } from '../../billing/money.ts'
import { parseId } from '../../ids.ts'
import { created } from '../answer.ts'
import { optional, text } from '../body-fields.ts'
import { EXAMPLE_IDS } from '../example-ids.ts'
import type { HttpPorts } from '../http-ports.ts'
import { ledgerEntryObject } from '../ledger-entry-object.ts'
import * as answers from '../openapi-schemas.ts'
import { type Route, route } from '../route.ts'

const MAX_DESCRIPTION_LENGTH = 200
const AMOUNT_RULE = 'a positive decimal number in a string, with at most 6 decimal places'

const chargeBody = z.object({
  user_id: text("a user's id", EXAMPLE_IDS.user),
  amount: text(AMOUNT_RULE, '0.25').transform((value, context) => {
    const amount = parseAmount(value)
    if (amount !== null) return amount
    context.addIssue({ code: 'custom', message: `must be ${AMOUNT_RULE}, for example "0.25"` })
    return z.NEVER
  }),
  key_id: optional(text('the id of an API key of the user', EXAMPLE_IDS.key)),
  description: text('what it is for', '1000 messages', { min: 1, max: MAX_DESCRIPTION_LENGTH }),
})

export function chargeRoutes({ charges }: Pick<HttpPorts, 'charges'>): Route[] {
  return [
    route({
      method: 'POST',
      path: '/v1/charges',
      operation: 'createCharge',
      tag: 'Apps',
      summary: "Charge a user's balance",
      description:
        'Needs the authorisation of the user. With `key_id`, which must be an active key of the user, the charge counts towards the spend limits of that key, which it never passes. The same Idempotency-Key and body again get the same answer for 24 hours.',
      access: 'app',
      body: chargeBody,
      example: { user_id: EXAMPLE_IDS.user, amount: '0.25', description: '1000 messages' },
      idempotencyKey: 'required',
      answers: [
        {
          status: 201,
          description: 'The ledger entry.',
          schema: answers.ledgerEntry,
          example: answers.ledgerEntryExample,
        },
      ],
      errors: [
        'insufficient_balance',
        'spend_limit_reached',
        'charge_not_authorized',
        'idempotency_conflict',
        'rate_limited',
      ],
      async handle({ principal, body, idempotencyKey }) {
        // A malformed id gets the same refusal as that of a user who has not authorised the app.
        const userId = parseId(body.user_id)
        const keyId = body.key_id === undefined ? null : parseId(body.key_id)
        if (!userId || (body.key_id !== undefined && !keyId)) throw notAuthorized()
        const charge = { userId, keyId, amount: body.amount, description: body.description }
        return created(ledgerEntryObject(await charges.charge(principal, charge, idempotencyKey!)))
      },
    }),
  ]
}
