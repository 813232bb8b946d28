// Modules that the service loads on first use are imported here: loading one during a run would take real, not simulated
// time, so that the outcome would depend on more than the seed.
import '../../src/logout-notices/logout-notices.ts'
import '../../src/outgoing/outgoing.ts'
import '../../src/webhooks/delivery.ts'
import { newId } from '../../src/ids.ts'
import { randomToken } from '../../src/secrets.ts'
import { Random } from '../support/random.ts'
import { followRun, refill } from './globals.ts'
import { Trace } from './trace.ts'
import { type Outcome, World } from './world.ts'

/** Runs one seed. The same seed gives the same outcome, whatever ran before. */
export async function simulate(
  seed: number,
  image: Uint8Array,
  print: ((line: string) => void) | null = null,
): Promise<Outcome> {
  const world = new World(seed, image, new Trace(print))
  followRun({ scheduler: world.scheduler, random: new Random(~seed) })
  const onError = (error: unknown) => world.violate(`unhandled ${(error as Error)?.stack ?? error}`)
  process.on('unhandledRejection', onError)
  process.on('uncaughtException', onError)
  try {
    // The service takes random bytes from pools, in which an earlier run may have left some. They are filled again, so
    // that the outcome of this run depends on its seed alone.
    refill(() => newId(0))
    refill(() => randomToken(32))
    return await world.run()
  } finally {
    followRun(null)
    process.off('unhandledRejection', onError)
    process.off('uncaughtException', onError)
  }
}
