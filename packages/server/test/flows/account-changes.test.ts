import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DELETION_WAIT } from '../../src/account-changes/deletions.ts'
import { EMAIL_CHANGE_LIFETIME } from '../../src/account-changes/email-change.ts'
import { ACCOUNT_MAIL_LIMITS } from '../../src/account-changes/mail-limits.ts'
import { BY_COMMAND_LINE } from '../../src/audit/audit.ts'
import { createMail } from '../../src/services.ts'
import { createBackupStore } from '../../src/storage/backup.ts'
import { forEachEngine } from '../support/engines.ts'
import {
  address,
  caller,
  openServices,
  race,
  refusedWith,
  type Services,
  tablesWith,
} from '../support/services.ts'

const OLD_ADDRESS = 'ada@example.com'
const NEW_ADDRESS = 'ada@example.org'
const page = { limit: 50, after: null }
const NEW_KEY = { name: null, scopes: null, expiresAt: null, appId: 'service-sdk', allowedNetworks: [] }

type SignedIn = Awaited<ReturnType<Services['signIn']>>

/** Requests the change and returns the tokens of its mails. */
async function requestChange(services: Services, { user }: SignedIn, email = NEW_ADDRESS) {
  // Mails of the same millisecond have no order, and the newest ones are read below.
  services.clock.advance(1)
  const session = (await services.sessions.list(user.id, page)).rows.at(-1)!
  await services.emailChanges.request({ user, session }, address(email), caller())
  const [toOld] = await services.mailsTo(user.email!, 'email_change_old')
  const [toNew] = await services.mailsTo(email, 'email_change_new')
  return { old: tokenOf(toOld!.link), new: tokenOf(toNew!.link) }
}

function tokenOf(link: string): string {
  return new URL(link).searchParams.get('token')!
}

async function typesOf({ store }: Services, userId: string): Promise<string[]> {
  return (await store.securityEvents.list(userId, page)).rows.map(({ type }) => type)
}

forEachEngine(engine => {
  test('the local inbox prints each link with what it is for', async t => {
    const services = await openServices(engine, t)
    const lines: string[] = []
    const config = { ...services.config, mail: { kind: 'inbox' as const } }
    const { dispatcher } = await createMail({ ...services, config }, line => lines.push(line))
    const ada = await services.signIn(OLD_ADDRESS)
    await requestChange(services, ada)
    await dispatcher.drain()
    const printedLabels = lines.map(line => line.slice(0, line.indexOf(': ')))
    assert.deepEqual(printedLabels.toSorted(), [
      `Link to confirm the change of address for ${OLD_ADDRESS}`,
      `Link to confirm the new address for ${NEW_ADDRESS}`,
      `Sign-in link for ${OLD_ADDRESS}`,
    ])
  })

  test('an address changes once both addresses confirmed, in either order', async t => {
    const services = await openServices(engine, t)
    const { emailChanges } = services
    for (const [first, second] of [
      ['old', 'new'],
      ['new', 'old'],
    ] as const) {
      const oldAddress = `${first}@example.com`
      const newAddress = `${first}@example.org`
      const ada = await services.signIn(oldAddress)
      const tokens = await requestChange(services, ada, newAddress)
      const firstConfirmation = await emailChanges.confirm(ada.user.id, tokens[first], caller())
      assert.deepEqual(firstConfirmation, { is: 'awaits', side: second })
      assert.equal((await services.users.get(ada.user.id))?.email, oldAddress)
      const secondConfirmation = await emailChanges.confirm(ada.user.id, tokens[second], caller())
      assert.equal(secondConfirmation.is, 'changed')
      assert.equal((await services.users.get(ada.user.id))?.email, newAddress)
      const signedInAgain = await services.signIn(newAddress)
      assert.equal(signedInAgain.user.id, ada.user.id)
      assert.ok((await typesOf(services, ada.user.id)).includes('email_changed'))
    }
  })

  test('after a change of address only the session that requested it stays, and all keys stay valid', async t => {
    const services = await openServices(engine, t)
    const ada = await services.signIn(OLD_ADDRESS)
    const { key } = await services.apiKeys.create(ada.user.id, NEW_KEY, caller())
    const otherSignIn = await services.signIn(OLD_ADDRESS)
    const session = (await services.sessions.list(ada.user.id, page)).rows.find(
      ({ id }) => id === ada.session.id,
    )!
    await services.emailChanges.request({ user: ada.user, session }, address(NEW_ADDRESS), caller())
    const [toOld] = await services.mailsTo(OLD_ADDRESS, 'email_change_old')
    const [toNew] = await services.mailsTo(NEW_ADDRESS, 'email_change_new')
    await services.emailChanges.confirm(ada.user.id, tokenOf(toNew!.link), caller())
    await services.emailChanges.confirm(ada.user.id, tokenOf(toOld!.link), caller())
    assert.equal(await refusedWith(services.sessions.authenticate(ada.tokens.accessToken)), 'none')
    assert.equal(
      await refusedWith(services.sessions.authenticate(otherSignIn.tokens.accessToken)),
      'invalid_token',
    )
    assert.equal(await refusedWith(services.agentTokens.exchange(key, undefined, caller())), 'none')
  })

  test('the link to one address does not confirm for the other, and works only for its own account', async t => {
    const services = await openServices(engine, t)
    const ada = await services.signIn(OLD_ADDRESS)
    const eve = await services.signIn('eve@example.com')
    const tokens = await requestChange(services, ada)
    const { emailChanges } = services
    for (let n = 0; n < 3; n++)
      assert.deepEqual(await emailChanges.confirm(ada.user.id, tokens.new, caller()), {
        is: 'awaits',
        side: 'old',
      })
    for (const token of [tokens.old, tokens.new, 'x', ''])
      assert.equal(await refusedWith(emailChanges.confirm(eve.user.id, token, caller())), 'invalid_request')
    assert.equal((await services.users.get(ada.user.id))?.email, OLD_ADDRESS)
  })

  test('the links of a change of address work once, in its hour, and not after it was cancelled or replaced', async t => {
    const services = await openServices(engine, t)
    const { clock, emailChanges } = services
    const ada = await services.signIn(OLD_ADDRESS)
    const refusalOfConfirming = (token: string) =>
      refusedWith(emailChanges.confirm(ada.user.id, token, caller()))

    const expiredTokens = await requestChange(services, ada)
    clock.advance(EMAIL_CHANGE_LIFETIME - 1)
    assert.equal(await refusalOfConfirming(expiredTokens.new), 'none')
    clock.advance(1)
    assert.equal(await refusalOfConfirming(expiredTokens.old), 'invalid_request')
    assert.equal(await emailChanges.pending(ada.user.id), null)

    const cancelledTokens = await requestChange(services, ada)
    await emailChanges.cancel(ada.user.id)
    assert.equal(await refusalOfConfirming(cancelledTokens.new), 'invalid_request')

    const replacedTokens = await requestChange(services, ada)
    const currentTokens = await requestChange(services, ada, 'other@example.org')
    assert.equal(await refusalOfConfirming(replacedTokens.old), 'invalid_request')
    assert.equal(await refusalOfConfirming(currentTokens.old), 'none')
    assert.equal(await refusalOfConfirming(currentTokens.new), 'none')
    assert.equal(await refusalOfConfirming(currentTokens.new), 'invalid_request')
    assert.equal((await services.users.get(ada.user.id))?.email, 'other@example.org')
  })

  test('the database holds hashes of the tokens of a change of address', async t => {
    const services = await openServices(engine, t)
    const tokens = await requestChange(services, await services.signIn(OLD_ADDRESS))
    for (const token of [tokens.old, tokens.new]) assert.deepEqual(await tablesWith(services, token), [])
  })

  test('both confirmations at once, repeated, change the address once', async t => {
    const services = await openServices(engine, t)
    const otherNode = await openServices(engine, t, {
      on: { node: await services.opened.reopen(), of: services.opened },
    })
    for (let round = 0; round < 5; round++) {
      const ada = await services.signIn(`ada${round}@example.com`)
      const tokens = await requestChange(services, ada, `ada${round}@example.org`)
      const { won, refused } = await race(8, index =>
        (index % 2 ? otherNode : services).emailChanges.confirm(
          ada.user.id,
          index % 4 < 2 ? tokens.old : tokens.new,
          caller(),
        ),
      )
      assert.equal(won.filter(({ is }) => is === 'changed').length, 1)
      assert.ok(refused.every(code => code === 'invalid_request'))
      const changes = (await typesOf(services, ada.user.id)).filter(type => type === 'email_changed')
      assert.equal(changes.length, 1)
    }
  })

  test('of two accounts that move to one address, and a stranger who signs up with it, one gets it', async t => {
    const services = await openServices(engine, t)
    const otherNode = await openServices(engine, t, {
      on: { node: await services.opened.reopen(), of: services.opened },
    })
    for (let round = 0; round < 6; round++) {
      const wantedAddress = `wanted${round}@example.org`
      const people = [
        await services.signIn(`ada${round}@example.com`),
        await services.signIn(`bob${round}@example.com`),
      ]
      const tokens: string[] = []
      for (const person of people) {
        const mailedTokens = await requestChange(services, person, wantedAddress)
        await services.emailChanges.confirm(person.user.id, mailedTokens.old, caller())
        tokens.push(mailedTokens.new)
      }
      const link = await services.sendTo(wantedAddress)
      const { refused } = await race<unknown>(3, index =>
        index < 2
          ? (index ? otherNode : services).emailChanges.confirm(
              people[index]!.user.id,
              tokens[index]!,
              caller(),
            )
          : otherNode.magicLinks.verify(
              { token: link.token, email: address(wantedAddress) },
              'api',
              caller(),
            ),
      )
      assert.ok(
        refused.every(code => ['invalid_request', 'magic_link_used'].includes(code)),
        refused.join(),
      )
      const owner = await services.users.find(wantedAddress)
      const emails = await Promise.all(
        people.map(async ({ user }) => (await services.users.get(user.id))!.email),
      )
      assert.ok(emails.filter(email => email === wantedAddress).length <= 1)
      assert.equal((await services.store.users.findByEmail(address(wantedAddress)))!.id, owner.id)
      assert.equal(refused.length, 2)
    }
  })

  test('an import that takes the address meanwhile causes no internal error', async t => {
    const services = await openServices(engine, t)
    for (let round = 0; round < 5; round++) {
      const ada = await services.signIn(`ada${round}@example.com`)
      const wantedAddress = `wanted${round}@example.org`
      const tokens = await requestChange(services, ada, wantedAddress)
      await services.emailChanges.confirm(ada.user.id, tokens.old, caller())
      const { refused } = await race<unknown>(2, index =>
        index === 0
          ? services.emailChanges.confirm(ada.user.id, tokens.new, caller())
          : services.users.importUsers(
              [{ email: address(wantedAddress), name: null, externalId: null }],
              BY_COMMAND_LINE,
            ),
      )
      assert.ok(
        refused.every(code => code === 'invalid_request'),
        refused.join(),
      )
      assert.ok(await services.store.users.findByEmail(address(wantedAddress)))
    }
  })

  test('a change to an address that has an account is answered like any other, and mails no link to it', async t => {
    const services = await openServices(engine, t)
    const ada = await services.signIn(OLD_ADDRESS)
    const bob = await services.signIn('bob@example.com')
    const tokens = await requestChange(services, ada, 'bob@example.com')
    assert.deepEqual(Object.keys(tokens), ['old', 'new'])
    // The mail to Bob has no link. The token that is queued with it is refused, since his address has an account.
    await services.emailChanges.confirm(ada.user.id, tokens.old, caller())
    assert.equal(
      await refusedWith(services.emailChanges.confirm(ada.user.id, tokens.new, caller())),
      'invalid_request',
    )
    assert.equal((await services.users.find('bob@example.com')).id, bob.user.id)
  })

  test('a change of address gives no second credit, and an earlier link to the old address creates no account', async t => {
    const services = await openServices(engine, t)
    const ada = await services.signIn(OLD_ADDRESS)
    const earlierLink = await services.sendTo(OLD_ADDRESS)
    const tokens = await requestChange(services, ada)
    await services.emailChanges.confirm(ada.user.id, tokens.old, caller())
    await services.emailChanges.confirm(ada.user.id, tokens.new, caller())
    const verify = services.magicLinks.verify(
      { token: earlierLink.token, email: address(OLD_ADDRESS) },
      'api',
      caller(),
    )
    assert.equal(await refusedWith(verify), 'magic_link_used')
    const newAccount = await services.signIn(OLD_ADDRESS)
    assert.notEqual(newAccount.user.id, ada.user.id)
    assert.equal((await services.accounts.get(newAccount.user.id)).balance, 0)
    // An address that the account has left may sign up again, without a second credit.
    const nextTokens = await requestChange(
      services,
      { ...ada, user: (await services.users.get(ada.user.id))! },
      'third@example.org',
    )
    await services.emailChanges.confirm(ada.user.id, nextTokens.old, caller())
    await services.emailChanges.confirm(ada.user.id, nextTokens.new, caller())
    const newOwnerSignIn = await services.signIn(NEW_ADDRESS)
    assert.ok(newOwnerSignIn.isNewUser)
    assert.equal((await services.accounts.get(newOwnerSignIn.user.id)).balance, 0)
  })

  test('the old address is notified of the change, and no other row keeps it', async t => {
    const services = await openServices(engine, t)
    const ada = await services.signIn(OLD_ADDRESS)
    const tokens = await requestChange(services, ada)
    await services.emailChanges.confirm(ada.user.id, tokens.old, caller())
    await services.emailChanges.confirm(ada.user.id, tokens.new, caller())
    const [mail] = await services.mailsTo(OLD_ADDRESS, 'email_changed')
    assert.equal(mail?.newEmail, NEW_ADDRESS)
    assert.deepEqual(await tablesWith(services, OLD_ADDRESS), ['messages'])
    await services.users.delete(ada.user.id)
    assert.deepEqual(await tablesWith(services, OLD_ADDRESS), [])
    assert.deepEqual(await tablesWith(services, NEW_ADDRESS), [])
  })

  test('an account may request five changes a day, and the new addresses get no more mail than by sign-ins', async t => {
    const services = await openServices(engine, t, { limits: [{ window: 'minute', limit: 3 }] })
    const ada = await services.signIn(OLD_ADDRESS)
    const { limit } = ACCOUNT_MAIL_LIMITS[0]!
    const requestAs = (person: SignedIn, email: string) => refusedWith(requestChange(services, person, email))
    for (let n = 0; n < 3; n++) assert.equal(await requestAs(ada, 'victim@example.org'), 'none')
    assert.equal(await requestAs(ada, 'victim@example.org'), 'rate_limited')
    const bob = await services.signIn('bob@example.com')
    assert.equal(await requestAs(bob, 'victim+tag@example.org'), 'rate_limited')
    for (let n = 3; n < limit; n++) assert.equal(await requestAs(ada, `other${n}@example.org`), 'none')
    assert.equal(await requestAs(ada, 'last@example.org'), 'rate_limited')
  })

  test('where sign-up is limited to some domains, addresses change only to these', async t => {
    const services = await openServices(engine, t)
    const ada = await services.signIn(OLD_ADDRESS)
    await services.policies.change({ signUp: 'domains', signUpDomains: ['example.com'] }, BY_COMMAND_LINE)
    assert.equal(await refusedWith(requestChange(services, ada, NEW_ADDRESS)), 'invalid_request')
    assert.equal(await refusedWith(requestChange(services, ada, 'ada2@example.com')), 'none')
  })

  test('an account is deleted seven days after its owner requested it, and works as before until then', async t => {
    const services = await openServices(engine, t)
    const { clock, deletions } = services
    const ada = await services.signIn(OLD_ADDRESS)
    const { key } = await services.apiKeys.create(ada.user.id, NEW_KEY, caller())
    const requestedDeletion = await deletions.request(ada.user.id, caller())
    assert.equal(requestedDeletion.deletesAt, clock.now() + DELETION_WAIT)
    const [mail] = await services.mailsTo(OLD_ADDRESS, 'account_deletion_requested')
    assert.equal(mail?.deletesAt, requestedDeletion.deletesAt)
    clock.advance(60_000)
    assert.equal(
      (await deletions.request(ada.user.id, caller())).deletesAt,
      requestedDeletion.deletesAt,
      'the time does not move',
    )
    assert.equal((await services.mailsTo(OLD_ADDRESS, 'account_deletion_requested')).length, 1)

    clock.set(requestedDeletion.deletesAt! - 1)
    assert.equal(await deletions.deleteDue(), 0)
    assert.equal(await refusedWith(services.agentTokens.exchange(key, undefined, caller())), 'none')
    clock.advance(1)
    assert.equal(await deletions.deleteDue(), 1)
    assert.equal((await services.users.get(ada.user.id))?.status, 'deleted')
    assert.deepEqual(await tablesWith(services, OLD_ADDRESS), [])
    assert.equal(
      await refusedWith(services.agentTokens.exchange(key, undefined, caller())),
      'api_key_revoked',
    )
    assert.equal(await deletions.deleteDue(), 0)
    const newAccount = await services.signIn(OLD_ADDRESS)
    assert.ok(newAccount.isNewUser)
    assert.equal((await services.accounts.get(newAccount.user.id)).balance, 0)
  })

  test('a deletion that was cancelled does not happen, also when both are concurrent', async t => {
    const services = await openServices(engine, t)
    const otherNode = await openServices(engine, t, {
      on: { node: await services.opened.reopen(), of: services.opened },
    })
    const { clock, deletions } = services
    const ada = await services.signIn(OLD_ADDRESS)
    await deletions.request(ada.user.id, caller())
    clock.advance(1)
    assert.equal((await deletions.cancel(ada.user.id, caller())).deletesAt, null)
    assert.equal((await deletions.cancel(ada.user.id, caller())).deletesAt, null)
    clock.advance(DELETION_WAIT)
    assert.equal(await deletions.deleteDue(), 0)
    const types = (await typesOf(services, ada.user.id)).filter(type => type.startsWith('account_deletion'))
    assert.deepEqual(types, ['account_deletion_cancelled', 'account_deletion_requested'])

    for (let round = 0; round < 5; round++) {
      const { user } = await services.signIn(`ada${round}@example.com`)
      await deletions.request(user.id, caller())
      clock.advance(DELETION_WAIT)
      const { won, refused } = await race<unknown>(3, index =>
        index === 0 ? deletions.cancel(user.id, caller()) : otherNode.deletions.deleteDue(),
      )
      const isDeleted = (await services.users.get(user.id))!.status === 'deleted'
      assert.equal(refused.length, isDeleted ? 1 : 0, refused.join())
      assert.equal(won.includes(1), isDeleted)
    }
  })

  test('the last administrator cannot request deletion, nor be deleted when the time has come', async t => {
    const services = await openServices(engine, t)
    const { clock, deletions } = services
    const [ada, bob] = [await services.signIn(OLD_ADDRESS), await services.signIn('bob@example.com')]
    await services.users.setRole(ada.user.id, 'admin')
    assert.equal(await refusedWith(deletions.request(ada.user.id, caller())), 'last_administrator')
    await services.users.setRole(bob.user.id, 'admin')
    for (const { user } of [ada, bob]) await deletions.request(user.id, caller())
    clock.advance(DELETION_WAIT)
    assert.equal(await deletions.deleteDue(), 1)
    const accountsAfter = await Promise.all([ada, bob].map(({ user }) => services.users.get(user.id)))
    const [admin] = accountsAfter.filter(user => user?.status === 'active')
    assert.ok(admin!.deletesAt! > clock.now(), 'postponed')
  })

  test('a change of address concurrent with a deletion or a suspension leaves no row and no session', async t => {
    const services = await openServices(engine, t)
    const otherNode = await openServices(engine, t, {
      on: { node: await services.opened.reopen(), of: services.opened },
    })
    for (let round = 0; round < 6; round++) {
      const oldAddress = `ada${round}@example.com`
      const newAddress = `ada${round}@example.org`
      const ada = await services.signIn(oldAddress)
      const tokens = await requestChange(services, ada, newAddress)
      await services.emailChanges.confirm(ada.user.id, tokens.old, caller())
      const act = round % 2 ? services.users.suspend : services.users.delete
      const { refused } = await race<unknown>(2, index =>
        index === 0 ? act(ada.user.id) : otherNode.emailChanges.confirm(ada.user.id, tokens.new, caller()),
      )
      assert.ok(
        refused.every(code => code === 'invalid_request'),
        refused.join(),
      )
      assert.deepEqual((await services.sessions.list(ada.user.id, page)).rows, [])
      assert.equal(
        await refusedWith(services.emailChanges.confirm(ada.user.id, tokens.new, caller())),
        'invalid_request',
      )
      if (round % 2) continue
      // A transaction that only locks a counter leaves an empty row, which housekeeping removes.
      await services.store.magicLinks.prune(0, 0, 500)
      assert.deepEqual(await tablesWith(services, oldAddress), [])
      // The counters of an address that the account never had remain, like those of any sign-in mail that was
      // requested.
      const counters = ['send_buckets', 'sends']
      assert.deepEqual(
        (await tablesWith(services, newAddress)).filter(table => !counters.includes(table)),
        [],
      )
    }
  })

  test('a restore with the journal keeps requested and cancelled deletions, and without it the delay begins again for everybody', async t => {
    const services = await openServices(engine, t)
    const { clock } = services
    const { user } = await services.signIn(OLD_ADDRESS)
    const store = createBackupStore(services.opened.storage.engine)
    const entry = { type: 'user', at: clock.now(), id: user.id, status: 'active' } as const
    const deletesAtAfter = async (deletes_at: number | null | undefined) => {
      await store.write(async tx => {
        await tx.apply({ ...entry, ...(deletes_at !== undefined && { deletes_at }) })
      })
      return (await services.users.get(user.id))!.deletesAt
    }
    assert.equal(await deletesAtAfter(1000), 1000)
    assert.equal(await deletesAtAfter(undefined), 1000, 'of an older version')
    await store.write(tx => tx.postponeDeletions(2000))
    assert.equal((await services.users.get(user.id))!.deletesAt, 2000)
    assert.equal(await deletesAtAfter(null), null)
    await store.write(tx => tx.postponeDeletions(3000))
    assert.equal((await services.users.get(user.id))!.deletesAt, null)
  })
})
