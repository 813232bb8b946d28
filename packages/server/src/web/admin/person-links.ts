import { html } from 'hono/html'
import type { PageKit } from '../kit.ts'
import type { Html } from '../layout.ts'
import { adminTexts } from './texts.ts'

/** Makes a link to the page of the person with this id. */
export type PersonLink = (id: string) => Html

/** Reads the addresses of these people by one query. The result links to each of them by address. */
export async function personLinks(kit: PageKit, ids: readonly (string | null)[]): Promise<PersonLink> {
  return (await peopleById(kit, ids)).link
}

/** Like `personLinks`; the result also says whether a person is suspended. */
export async function peopleById(
  kit: PageKit,
  ids: readonly (string | null)[],
): Promise<{ link: PersonLink; isSuspended(id: string): boolean }> {
  const { deleted } = adminTexts.people
  const uniqueIds = [...new Set(ids.filter(id => id !== null))]
  const people = new Map((await kit.store.users.findMany(uniqueIds)).map(user => [user.id, user]))
  return {
    link: id => html`<a href="/admin/users/${id}" title="${id}">${people.get(id)?.email ?? deleted}</a>`,
    isSuspended: id => people.get(id)?.status === 'suspended',
  }
}
