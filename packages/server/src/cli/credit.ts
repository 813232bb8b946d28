import { formatMoney, parseAmount } from '../billing/money.ts'
import { toRfc3339 } from '../clock.ts'
import { newId } from '../ids.ts'
import { OperatorError } from '../operator-error.ts'
import { byOperator, REASON } from './by-operator.ts'
import type { Command } from './command.ts'

const MAX_DESCRIPTION_LENGTH = 200

export const commands: Command[] = [
  {
    name: 'credit',
    args: ['WHO', 'AMOUNT'],
    options: {
      description: { value: 'TEXT', meaning: 'what the person sees in the ledger ("Credit")' },
      'idempotency-key': { value: 'KEY', meaning: 'repeating the command with it adds nothing' },
      reason: REASON,
    },
    summary: "Add credit to a person's balance.",
    help: `WHO is an id or an e-mail address, AMOUNT a positive decimal with at most 6 places. Scripts give each credit an
--idempotency-key of their own, so that a repeated command adds it once. Example:
  keyway credit ada@example.com 5.00 --description "Refund of order 4711" --idempotency-key refund-4711`,
    async run(context) {
      const { users, credits, clock } = await context.services()
      const amount = parseAmount(context.args[1]!)
      if (amount === null)
        throw new OperatorError('AMOUNT must be a positive decimal with at most 6 places, for example 5.00.')
      const { description = 'Credit', 'idempotency-key': keyOption, reason } = context.options
      const text = String(description)
      if (text === '' || [...text].length > MAX_DESCRIPTION_LENGTH || /\p{Cc}/u.test(text))
        throw new OperatorError(
          `--description must be 1 to ${MAX_DESCRIPTION_LENGTH} characters without control characters.`,
        )
      const key = keyOption === undefined ? newId(clock.now()) : String(keyOption)
      const user = await users.find(context.args[0]!)
      const credit = { userId: user.id, amount, description: text }
      const entry = await credits.grant(credit, key, byOperator(reason))
      context.print(
        {
          id: entry.id,
          user_id: entry.userId,
          amount: formatMoney(entry.amount),
          balance_after: formatMoney(entry.balanceAfter),
          description: entry.description,
          created_at: toRfc3339(entry.createdAt),
        },
        `${user.email ?? user.id} got ${formatMoney(entry.amount)}; the balance was ${formatMoney(entry.balanceAfter)} then.`,
      )
      return 0
    },
  },
]
