import type { TestContext } from 'node:test'
import { createCharges } from '../../src/billing/charges.ts'
import { KeywayError, unavailable } from '../../src/errors.ts'
import type { DatabaseStorage } from '../../src/storage/database.ts'
import type { Transaction } from '../../src/store.ts'
import { type EngineName, openTestStorage } from '../support/engines.ts'
import { address, caller, openServices, type Services } from '../support/services.ts'
import { checkAccounts } from './accounts.ts'
import type { ScenarioResult } from './world.ts'

interface StoreOperation {
  name: string
  /** Prepares what the operation needs, without faults; returns the operation. */
  prepare(services: Services, n: number): Promise<() => Promise<unknown>>
  /** Error codes that a retry may get if the first attempt had taken effect and its answer was lost. */
  lost?: string[]
}

const OPERATIONS: StoreOperation[] = [
  {
    name: 'send',
    prepare:
      async ({ magicLinks }, n) =>
      () =>
        magicLinks.send({ email: address(`send-${n}@example.com`), appId: 'console' }, caller()),
  },
  {
    name: 'verify, new account',
    lost: ['magic_link_used'],
    async prepare(services, n) {
      const email = address(`new-${n}@example.com`)
      const { token } = await services.sendTo(email)
      return () => services.magicLinks.verify({ token, email }, 'api', caller())
    },
  },
  {
    name: 'verify, known account',
    lost: ['magic_link_used'],
    async prepare(services, n) {
      const email = address(`known-${n}@example.com`)
      await services.signIn(email)
      const { token } = await services.sendTo(email)
      return () => services.magicLinks.verify({ token, email }, 'api', caller())
    },
  },
  {
    name: 'refresh',
    async prepare(services, n) {
      const { tokens } = await services.signIn(`refresh-${n}@example.com`)
      return () => services.sessions.refresh(tokens.refreshToken, `a-retry-key-of-${n}-x`, caller())
    },
  },
  {
    name: 'reuse',
    lost: ['refresh_token_reused'],
    async prepare(services, n) {
      const { tokens } = await services.signIn(`reuse-${n}@example.com`)
      await services.sessions.refresh(tokens.refreshToken, null, caller())
      return () => services.sessions.refresh(tokens.refreshToken, null, caller())
    },
  },
  {
    name: 'logout',
    async prepare(services, n) {
      const { tokens } = await services.signIn(`logout-${n}@example.com`)
      return () => services.sessions.endByToken(tokens.refreshToken, 'logout', caller())
    },
  },
  {
    name: 'create a key',
    async prepare(services, n) {
      const { user } = await services.signIn(`create-${n}@example.com`)
      const wanted = { name: null, scopes: null, expiresAt: null, appId: 'service-sdk', allowedNetworks: [] }
      return () => services.apiKeys.create(user.id, wanted, caller())
    },
  },
  ...(['exchange', 'revoke', 'rotate', 'revoke by holder'] as const).map(
    (name): StoreOperation => ({
      name,
      lost: name === 'rotate' ? ['api_key_replaced', 'api_key_inactive'] : [],
      async prepare(services, n) {
        const { user } = await services.signIn(`${name.replaceAll(' ', '-')}-${n}@example.com`)
        const wanted = {
          name: null,
          scopes: null,
          expiresAt: null,
          appId: 'service-sdk',
          allowedNetworks: [],
        }
        const { apiKey, key } = await services.apiKeys.create(user.id, wanted, caller())
        return {
          exchange: () => services.agentTokens.exchange(key, undefined, caller()),
          revoke: () => services.apiKeys.revoke(user.id, apiKey.id, caller()),
          rotate: () => services.apiKeys.rotate(user.id, apiKey.id, 0, caller()),
          'revoke by holder': () => services.apiKeys.revokeByPossession(key, caller()),
        }[name]
      },
    }),
  ),
  ...(['suspend', 'activate', 'delete'] as const).map(
    (name): StoreOperation => ({
      name,
      lost: name === 'delete' ? ['not_found'] : [],
      async prepare(services, n) {
        const { user } = await services.signIn(`${name}-${n}@example.com`)
        if (name === 'activate') await services.users.suspend(user.id)
        return () => services.users[name](user.id)
      },
    }),
  ),
  {
    name: 'charge',
    async prepare(services, n) {
      const { user } = await services.signIn(`charge-${n}@example.com`)
      const wanted = { userId: user.id, amount: 100_000, description: 'a test' }
      const charges = createCharges(services)
      return () => charges.charge({ id: 'console' }, wanted, `charge-number-${n}`)
    },
  },
  {
    name: 'withdraw',
    async prepare(services, n) {
      const { user } = await services.signIn(`withdraw-${n}@example.com`)
      return () => services.accounts.withdraw(user.id, 'console', caller())
    },
  },
  { name: 'rotate the signing key', prepare: async services => () => services.signingKeys.rotate() },
]

/** Maximum number of store calls that are failed: more than any operation makes. */
const MOST_CALLS = 80

/**
 * Fails the first, the second, … store call of every operation. Each time the caller must get `unavailable`, no partial
 * effect may remain, and a retry must succeed.
 */
export async function failNthStoreCall(
  engine: EngineName,
  _seed: number,
  scale: number,
): Promise<ScenarioResult> {
  const ends: (() => unknown)[] = []
  const t = { after: (end: () => unknown) => ends.unshift(end) } as unknown as TestContext
  const violations: string[] = []
  let faults = 0
  let operations = 0
  try {
    const opened = await openTestStorage(engine, t)
    const faulty = failing(opened.storage)
    const services = await openServices(engine, t, { on: { node: faulty.storage, of: opened } })
    for (const operation of scale < 1 ? OPERATIONS.slice(0, 7) : OPERATIONS) {
      for (let n = 1; n <= MOST_CALLS; n++) {
        const act = await operation.prepare(services, n)
        faulty.failAt(n)
        const first = await codeOf(act())
        const failed = faulty.disarm()
        operations += 2
        if (!failed) break
        faults++
        const isExpected = first === 'unavailable' || first === 'ok' || operation.lost?.includes(first)
        if (!isExpected) violations.push(`${operation.name}, call ${n}: answered "${first}"`)
        const second = await codeOf(act())
        if (second !== 'ok' && !operation.lost?.includes(second))
          violations.push(`${operation.name}, call ${n}: the retry was answered "${second}"`)
      }
      violations.push(...(await checkAccounts(opened.storage)).map(breach => `${operation.name}: ${breach}`))
    }
  } finally {
    for (const end of ends) await end()
  }
  return { faults, operations, violations, notes: [] }
}

function failing(storage: DatabaseStorage) {
  let left = 0
  let failed = false
  const count = () => {
    if (left === 0 || --left > 0) return
    failed = true
    throw unavailable(new Error('injected fault'))
  }
  const counted = <Ports extends object>(ports: Ports): Ports =>
    new Proxy(ports, {
      get(target, name) {
        const port = Reflect.get(target, name)
        // `facts` of a transaction is a list, not a store.
        if (typeof port !== 'object' || port === null || Array.isArray(port)) return port
        return new Proxy(port, {
          get(of, operation) {
            const method = Reflect.get(of, operation)
            if (typeof method !== 'function') return method
            return async (...values: unknown[]) => {
              count()
              return method.apply(of, values)
            }
          },
        })
      },
    })
  const faulty: DatabaseStorage = {
    ...storage,
    store: counted(storage.store),
    transaction: (work, landed) =>
      storage.transaction(
        tx => work(counted(tx as Transaction)),
        landed && (store => landed(counted(store))),
      ),
  }
  return {
    storage: faulty,
    failAt(n: number) {
      left = n
      failed = false
    },
    /** Stops injecting; returns whether a call was failed. */
    disarm(): boolean {
      left = 0
      return failed
    },
  }
}

async function codeOf(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => 'ok',
    error => (error instanceof KeywayError ? error.code : `an error of its own: ${error}`),
  )
}
