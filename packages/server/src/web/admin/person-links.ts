import { html } from 'hono/html'
import type { PageKit } from '../kit.ts'
import type { Html } from '../layout.ts'
import { adminTexts } from './texts.ts'

/** A link to a person's page, by id. */
export type PersonLink = (id: string) => Html

/** Links to these people, labelled with their addresses, which one query reads. A deleted account has no address. */
export async function personLinks(kit: PageKit, ids: readonly (string | null)[]): Promise<PersonLink> {
  const { deleted } = adminTexts.people
  const known = [...new Set(ids.filter(id => id !== null))]
  const addresses = new Map((await kit.store.users.findMany(known)).map(({ id, email }) => [id, email]))
  return id => html`<a href="/admin/users/${id}" title="${id}">${addresses.get(id) ?? deleted}</a>`
}
