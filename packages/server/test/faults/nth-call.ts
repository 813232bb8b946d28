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
  /** Sets up what the operation needs, without faults; returns the operation. */
  prepare(services: Services, n: number): Promise<() => Promise<unknown>>
  /** Error codes of the call or its retry that are no violation: an earlier attempt may have taken effect unnoticed. */
  acceptedCodes?: string[]
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
    acceptedCodes: ['magic_link_used'],
    async prepare(services, n) {
      const email = address(`new-${n}@example.com`)
      const { token } = await services.sendTo(email)
      return () => services.magicLinks.verify({ token, email }, 'api', caller())
    },
  },
  {
    name: 'verify, known account',
    acceptedCodes: ['magic_link_used'],
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
    acceptedCodes: ['refresh_token_reused'],
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
      const newKey = { name: null, scopes: null, expiresAt: null, appId: 'service-sdk', allowedNetworks: [] }
      return () => services.apiKeys.create(user.id, newKey, caller())
    },
  },
  ...(['exchange', 'revoke', 'rotate', 'revoke by holder'] as const).map(
    (name): StoreOperation => ({
      name,
      acceptedCodes: name === 'rotate' ? ['api_key_replaced', 'api_key_inactive'] : [],
      async prepare(services, n) {
        const { user } = await services.signIn(`${name.replaceAll(' ', '-')}-${n}@example.com`)
        const newKey = {
          name: null,
          scopes: null,
          expiresAt: null,
          appId: 'service-sdk',
          allowedNetworks: [],
        }
        const { apiKey, key } = await services.apiKeys.create(user.id, newKey, caller())
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
      acceptedCodes: name === 'delete' ? ['not_found'] : [],
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
      const wantedCharge = { userId: user.id, amount: 100_000, description: 'a test' }
      const charges = createCharges(services)
      return () => charges.charge({ id: 'console' }, wantedCharge, `charge-number-${n}`)
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
const MAX_CALLS = 80

/**
 * Fails the first, the second, … store call of every operation. Each time the caller must get `unavailable` or an
 * outcome that the operation may have without a fault, no partial effect may remain, and a retry must succeed.
 */
export async function failNthStoreCall(
  engine: EngineName,
  _seed: number,
  scale: number,
): Promise<ScenarioResult> {
  const cleanUps: (() => unknown)[] = []
  const t = { after: (end: () => unknown) => cleanUps.unshift(end) } as unknown as TestContext
  const violations: string[] = []
  let faultCount = 0
  let operationCount = 0
  try {
    const testStorage = await openTestStorage(engine, t)
    const failingStorage = createFailingStorage(testStorage.storage)
    const services = await openServices(engine, t, { on: { node: failingStorage.storage, of: testStorage } })
    for (const operation of scale < 1 ? OPERATIONS.slice(0, 7) : OPERATIONS) {
      for (let n = 1; n <= MAX_CALLS; n++) {
        const act = await operation.prepare(services, n)
        failingStorage.failAt(n)
        const firstCode = await codeOf(act())
        const wasInjected = failingStorage.disarm()
        operationCount += 2
        if (!wasInjected) break
        faultCount++
        const isExpected =
          firstCode === 'unavailable' || firstCode === 'ok' || operation.acceptedCodes?.includes(firstCode)
        if (!isExpected) violations.push(`${operation.name}, call ${n}: answered "${firstCode}"`)
        const retryCode = await codeOf(act())
        if (retryCode !== 'ok' && !operation.acceptedCodes?.includes(retryCode))
          violations.push(`${operation.name}, call ${n}: the retry was answered "${retryCode}"`)
      }
      violations.push(
        ...(await checkAccounts(testStorage.storage)).map(breach => `${operation.name}: ${breach}`),
      )
    }
  } finally {
    for (const end of cleanUps) await end()
  }
  return { faults: faultCount, operations: operationCount, violations, notes: [] }
}

function createFailingStorage(storage: DatabaseStorage) {
  let callsUntilFault = 0
  let wasInjected = false
  const countCall = () => {
    if (callsUntilFault === 0 || --callsUntilFault > 0) return
    wasInjected = true
    throw unavailable(new Error('injected fault'))
  }
  const withCountedCalls = <Ports extends object>(ports: Ports): Ports =>
    new Proxy(ports, {
      get(target, name) {
        const port = Reflect.get(target, name)
        // The `facts` of a transaction are a list, not a store.
        if (typeof port !== 'object' || port === null || Array.isArray(port)) return port
        return new Proxy(port, {
          get(of, operation) {
            const method = Reflect.get(of, operation)
            if (typeof method !== 'function') return method
            return async (...values: unknown[]) => {
              countCall()
              return method.apply(of, values)
            }
          },
        })
      },
    })
  const faultyStorage: DatabaseStorage = {
    ...storage,
    store: withCountedCalls(storage.store),
    transaction: (work, readBack) =>
      storage.transaction(
        tx => work(withCountedCalls(tx as Transaction)),
        readBack && (store => readBack(withCountedCalls(store))),
      ),
  }
  return {
    storage: faultyStorage,
    failAt(n: number) {
      callsUntilFault = n
      wasInjected = false
    },
    /** Stops injecting; returns whether a call was failed. */
    disarm(): boolean {
      callsUntilFault = 0
      return wasInjected
    },
  }
}

async function codeOf(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => 'ok',
    error => (error instanceof KeywayError ? error.code : `an unexpected error: ${error}`),
  )
}
