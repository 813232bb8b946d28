import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../support/free-port.ts'
import { until } from '../support/patience.ts'
import { withClient } from '../support/postgres.ts'
import { startProxy } from '../support/proxy.ts'
import { quickFolder } from '../support/quick-folder.ts'
import { createMachine, giveToPostgres, startHaproxy } from './machine.ts'

const MAX_START_MS = 90_000
const MAX_LEADERLESS_MS = 90_000

/** Two machines with PostgreSQL under Patroni and a third for etcd, with HAProxy before them. */
export interface PatroniCluster extends AsyncDisposable {
  /** The service's database, through HAProxy. */
  url: string
  /** SIGKILLs the primary's machine: PostgreSQL with all its processes, Patroni, and etcd. Returns its name. */
  killPrimary(): Promise<string>
  /** SIGKILLs the standby's machine. Returns its name. */
  killStandby(): Promise<string>
  /** Starts a killed machine again. */
  start(name: string): void
  /** Resolves when a member other than `former` is the primary. */
  untilTakenOver(former: string): Promise<void>
  /** Resolves when both members run, and the standby has everything that the primary has. */
  untilReplicated(): Promise<void>
  /** Stops or resumes replication. What a member sends to the other while replication is stopped is lost. */
  replicate(isOn: boolean): void
}

/** A member of the cluster, as Patroni lists it. */
interface Member {
  name: string
  role: string
  state: string
  timeline?: number
  lag?: number | string
}

/** Starts the cluster, and creates the service's role and database as docs/operations.md does. */
export async function startCluster({ synchronous }: { synchronous: boolean }): Promise<PatroniCluster> {
  const folder = mkdtempSync(join(quickFolder(), 'keyway-failover-'))
  giveToPostgres(folder)
  const network = `127.${100 + randomByte()}.${randomByte()}`
  const addresses = [1, 2, 3].map(n => `${network}.${n}`)
  /** Proxies between the members, so that replication can be cut off. */
  const proxies = await Promise.all(
    addresses.slice(0, 2).map(address => startProxy(`postgres://${address}:5432`)),
  )
  const machines = addresses.map((address, n) => {
    const replicationPort = proxies[n]?.port ?? null
    return createMachine({ folder, name: `db${n + 1}`, address, network, synchronous, replicationPort })
  })
  const port = await freePort()
  const haproxy = startHaproxy(folder, network, port)
  const kill = () => {
    haproxy.kill('SIGKILL')
    for (const machine of machines) machine.kill()
    rmSync(folder, { recursive: true, force: true })
  }
  // Otherwise Patroni and PostgreSQL would keep running after the end of this process.
  process.once('exit', kill)
  async function dispose() {
    process.off('exit', kill)
    kill()
    await Promise.all(proxies.map(proxy => proxy.close()))
  }

  for (const machine of machines) machine.start()
  try {
    await until('the standby follows', isReplicated, MAX_START_MS)
    await createDatabase(`postgres://postgres:REPLACE-1@127.0.0.1:${port}/postgres`)
  } catch (error) {
    await dispose()
    throw error
  }
  return {
    url: `postgres://keyway:secret@127.0.0.1:${port}/keyway`,
    killPrimary: () => killMember(each => each.role === 'leader'),
    killStandby: () => killMember(each => each.role !== 'leader'),
    start: name => machines.find(each => each.name === name)!.start(),
    async untilTakenOver(former) {
      const isTakenOver = async () => ((await runningPrimary())?.name ?? former) !== former
      await until('the standby takes over', isTakenOver, MAX_LEADERLESS_MS)
    },
    async untilReplicated() {
      await until('the standby follows', isReplicated, MAX_START_MS)
    },
    replicate(isOn) {
      for (const proxy of proxies) isOn ? proxy.heal() : proxy.blackHole()
    },
    [Symbol.asyncDispose]: dispose,
  }

  async function killMember(matches: (member: Member) => boolean): Promise<string> {
    const { name } = (await listMembers()).find(matches)!
    machines.find(each => each.name === name)!.kill()
    return name
  }

  async function runningPrimary(): Promise<Member | undefined> {
    return (await listMembers()).find(({ role, state }) => role === 'leader' && state === 'running')
  }

  async function isReplicated(): Promise<boolean> {
    const leader = await runningPrimary()
    const standby = (await listMembers()).find(
      ({ role }) => role === (synchronous ? 'sync_standby' : 'replica'),
    )
    if (!leader || !standby) return false
    const isStreaming = ['running', 'streaming'].includes(standby.state) && standby.lag === 0
    return isStreaming && standby.timeline === leader.timeline
  }

  /** The members, as listed by the first machine that answers. */
  async function listMembers(): Promise<Member[]> {
    for (const address of addresses.slice(0, 2)) {
      const signal = AbortSignal.timeout(2000)
      const answer = await fetch(`http://${address}:8008/cluster`, { signal }).catch(() => null)
      if (answer) return ((await answer.json()) as { members: Member[] }).members
    }
    return []
  }
}

/** Runs the statements of docs/operations.md, "For production, by one script", once HAProxy has found the primary. */
async function createDatabase(url: string): Promise<void> {
  const isReachable = () =>
    withClient(url, client => client.query('select 1')).then(
      () => true,
      () => false,
    )
  await until('HAProxy finds the primary', isReachable, MAX_START_MS)
  await withClient(url, async client => {
    await client.query(`create role keyway login password 'secret'`)
    await client.query('create database keyway owner keyway')
    await client.query('revoke connect on database keyway from public')
  })
}

function randomByte(): number {
  return 1 + Math.floor(Math.random() * 150)
}
