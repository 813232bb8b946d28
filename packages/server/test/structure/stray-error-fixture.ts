import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'

/* Run by stray-errors.test.ts, which checks that the run fails. */

test('passes, although it leaves an unhandled rejection behind', async () => {
  await wait(1)
  raiseError(process.env.STRAY_ERROR)
  if (process.env.STRAY_ERROR !== 'a late rejection') await wait(50)
})

function raiseError(what: string | undefined): void {
  if (what === 'a rejection') void Promise.reject(new Error(what))
  else if (what === 'a throw') setTimeout(fail, 1, what)
  else if (what === 'a late rejection') setTimeout(() => void Promise.reject(new Error(what)), 10)
}

function fail(what: string): never {
  throw new Error(what)
}
