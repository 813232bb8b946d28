import type { TestContext } from 'node:test'
import { BY_COMMAND_LINE } from '../../src/audit/audit.ts'
import { parseEmailAddress } from '../../src/users/email-address.ts'
import type { UserRole } from '../../src/users/user.ts'
import { type Client, signedInClient } from './page-client.ts'
import { startWeb } from './web.ts'

/** Starts the service. The returned `signUp` signs a new person in, and gives them a role. */
export async function openAdministration(t: TestContext, settings: Record<string, string> = {}) {
  const web = await startWeb(t, settings)
  const { services } = web.server
  const { store } = services.storage
  const idOf = async (email: string) => (await store.users.findByEmail(parseEmailAddress(email)!))!.id
  const signUp = async (name: string, role: UserRole) => {
    const email = `${name}@example.com`
    const client = await signedInClient(web, email)
    const id = await idOf(email)
    if (role !== 'user') await services.users.setRole(id, role, BY_COMMAND_LINE)
    return { client, id, email }
  }
  /** Posts `fields` to `path`, with the form token of `page`. */
  const post = async (client: Client, page: string, path: string, fields: Record<string, string> = {}) => {
    const form_token = await client.formToken(page)
    return client.post(path, { form_token, ...fields })
  }
  const auditEvents = async () => (await store.audit.list({}, { limit: 50, after: null })).rows
  const createKey = (userId: string, overrides: { name?: string; externalId?: string } = {}) => {
    const newKey = {
      appId: 'x',
      allowedNetworks: [],
      scopes: null,
      name: 'robot',
      expiresAt: null,
      ...overrides,
    }
    return services.apiKeys.create(userId, newKey, {
      address: '127.0.0.1',
      network: '127.0.0.1',
      client: null,
    })
  }
  return { web, services, store, signUp, post, auditEvents, createKey }
}
