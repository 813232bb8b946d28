import { refusalOf } from './calls.ts'
import type { Person } from './person.ts'

/** Micro-dollars; the trial credit of 2.00 pays for a few. */
const AMOUNTS = [100_000, 300_000, 700_000]
const CHARGING_APP = 'console'

/** Charges a balance with one Idempotency-Key, from one or two programs at once, and again after a lost answer. */
export async function charge(person: Person): Promise<void> {
  const { world, random } = person
  const userId = person.userId!
  const idempotencyKey = person.newIdempotencyKey()
  const chargeRequest = { userId, amount: random.pick(AMOUNTS), description: 'work' }
  const entries = new Set<string>()
  await Promise.all(
    Array.from({ length: random.pick([1, 1, 2]) }, async () => {
      for (let attempt = 0; attempt < 3; attempt++) {
        const outcome = await person
          .request('charge', ({ charges }) =>
            charges.charge({ id: CHARGING_APP }, chargeRequest, idempotencyKey),
          )
          .then(({ id }) => ({ id }), refusalOf)
        if (typeof outcome === 'object') {
          entries.add(outcome.id)
          world.acknowledged(`charge ${outcome.id}`, 'select 1 from ledger_entries where id = ?', outcome.id)
        }
        if (outcome !== 'lost') return
        await person.pause(200)
      }
    }),
  )
  if (entries.size > 1) world.violate(`one Idempotency-Key was charged ${entries.size} times`)
}
