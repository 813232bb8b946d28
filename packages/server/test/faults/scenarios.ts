import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { call } from '../support/nodes.ts'
import { withClient } from '../support/postgres.ts'
import { startRedis } from '../support/redis.ts'
import { temporaryFolder } from '../support/serve.ts'
import { diskFull } from './disk.ts'
import { applyFault, failOver, killLoop } from './fault-injection.ts'
import { failNthStoreCall } from './nth-call.ts'
import { resumeAgents } from './resumed-agents.ts'
import { rollingRestart } from './rolling-restart.ts'
import { rollingUpgrade } from './rolling-upgrade.ts'
import { type ScenarioResult, withWorld } from './world.ts'

export interface Scenario {
  name: string
  needs: readonly ('postgres' | 'redis' | 'faketime' | 'tmpfs' | 'previous version')[]
  /** `scale` in the one-minute run of `npm test`, which leaves out scenarios that do not have this. */
  short?: number
  /** @param scale the amount of load and faults, as a share of the full run's */
  run(seed: number, scale: number): Promise<ScenarioResult>
}

const SECOND = 1000

export const scenarios: Scenario[] = [
  {
    name: 'kill -9 under load, SQLite',
    needs: [],
    short: 0.12,
    run: (seed, scale) =>
      withWorld(seed, { engine: 'sqlite' }, world =>
        world.underLoad(() => killLoop(world, Math.ceil(30 * scale))),
      ),
  },
  {
    name: 'kill -9 under load, two nodes',
    needs: ['postgres'],
    run: (seed, scale) =>
      withWorld(seed, { engine: 'postgres' }, world =>
        world.underLoad(() => killLoop(world, Math.ceil(30 * scale))),
      ),
  },
  {
    name: 'PostgreSQL crashes and recovers',
    needs: ['postgres'],
    short: 0.4,
    run: (seed, scale) =>
      withWorld(seed, { engine: 'postgres' }, world =>
        world.underLoad(() =>
          applyFault(
            world,
            scale,
            () => world.postgres!.crash(),
            () => world.postgres!.start(),
          ),
        ),
      ),
  },
  { name: 'PostgreSQL dies, its synchronous standby takes over', needs: ['postgres'], run: failOver },
  {
    name: 'PostgreSQL stops responding',
    needs: ['postgres'],
    run: (seed, scale) =>
      withWorld(seed, { engine: 'postgres' }, world =>
        world.underLoad(() =>
          applyFault(
            world,
            scale,
            () => world.databaseProxies.forEach(proxy => void proxy.blackHole()),
            () => world.databaseProxies.forEach(proxy => void proxy.heal()),
          ),
        ),
      ),
  },
  {
    name: 'PostgreSQL with 60 ms latency',
    needs: ['postgres'],
    run: (seed, scale) =>
      withWorld(seed, { engine: 'postgres' }, world =>
        world.underLoad(() =>
          applyFault(
            world,
            scale,
            () => world.databaseProxies.forEach(proxy => void proxy.delay(60)),
            () => world.databaseProxies.forEach(proxy => void proxy.heal()),
          ),
        ),
      ),
  },
  {
    name: 'PostgreSQL read-only',
    needs: ['postgres'],
    run: (seed, scale) =>
      withWorld(seed, { engine: 'postgres' }, world =>
        world.underLoad(() =>
          applyFault(
            world,
            scale,
            () => world.postgres!.readOnly(true),
            () => world.postgres!.readOnly(false),
          ),
        ),
      ),
  },
  {
    name: 'connections reset before and after COMMIT',
    needs: ['postgres'],
    short: 0.2,
    run: (seed, scale) =>
      withWorld(seed, { engine: 'postgres', people: 6 }, world =>
        world.underLoad(
          async () => {
            for (let round = 0; round < 60 * scale; round++) {
              const cutWhen = world.random.below(2) === 0 ? 'unreceived' : 'unanswered'
              for (const proxy of world.databaseProxies) proxy.cutCommits(1 + world.random.below(2), cutWhen)
              await wait(100 + world.random.below(300))
            }
          },
          async () => {
            for (const proxy of world.databaseProxies) proxy.cutCommits(0, 'unreceived')
            world.faults = world.databaseProxies.reduce((sum, proxy) => sum + proxy.commitsCut, 0)
          },
        ),
      ),
  },
  {
    name: 'pool exhausted by a row lock',
    needs: ['postgres'],
    run: (seed, scale) =>
      withWorld(seed, { engine: 'postgres', people: 30 }, world =>
        world.underLoad(() =>
          withClient(world.postgres!.url, holder =>
            applyFault(
              world,
              scale,
              () => holder.query('begin; lock table sessions, api_keys in access exclusive mode'),
              () => holder.query('rollback'),
            ),
          ),
        ),
      ),
  },
  {
    name: 'Redis outage',
    needs: ['postgres', 'redis'],
    run: async (seed, scale) => {
      const redis = await startRedis()
      try {
        const settings = () => ({ KEYWAY_EVENTS_URL: redis.url })
        return await withWorld(seed, { engine: 'postgres', settings }, world =>
          world.underLoad(() => applyFault(world, scale, redis.kill, redis.start)),
        )
      } finally {
        await redis.kill()
      }
    },
  },
  {
    name: 'nodes without events of each other',
    needs: ['postgres'],
    run: (seed, scale) =>
      withWorld(seed, { engine: 'postgres' }, world =>
        world.underLoad(() =>
          applyFault(
            world,
            scale,
            () => world.eventProxies.forEach(proxy => void proxy.cut()),
            () => world.eventProxies.forEach(proxy => void proxy.heal()),
          ),
        ),
      ),
  },
  {
    name: 'mail server down, slow, invalid, crashing',
    needs: [],
    run: (seed, scale) =>
      withWorld(seed, { engine: 'sqlite', people: 6 }, world =>
        world.underLoad(
          async () => {
            const faults = [
              () => world.mailProxy.cut(),
              () => world.mailProxy.delay(400),
              () => world.mailProxy.garble(),
              () => world.smtp.behave((_to, attempt) => (attempt % 2 === 1 ? 451 : 'accept')),
              () => world.smtp.behave((_to, attempt) => (attempt % 2 === 1 ? 'die-after-data' : 'accept')),
            ]
            for (const begin of faults) {
              begin()
              world.faults++
              await wait(3 * SECOND * Math.max(0.5, scale))
              world.mailProxy.heal()
              world.smtp.behave(() => 'accept')
              await wait(SECOND)
            }
          },
          async () => world.mailProxy.heal(),
        ),
      ),
  },
  {
    name: 'a node whose clock is two minutes ahead',
    needs: ['postgres', 'faketime'],
    run: (seed, scale) =>
      withWorld(
        seed,
        {
          engine: 'postgres',
          settings: (node): Record<string, string> =>
            node === 0
              ? {}
              : {
                  LD_PRELOAD: FAKETIME,
                  FAKETIME: '+120s',
                  DONT_FAKE_MONOTONIC: '1',
                  FAKETIME_DONT_FAKE_MONOTONIC: '1',
                },
        },
        world =>
          world.underLoad(async () => {
            world.faults++
            await wait(8 * SECOND * scale)
          }),
      ),
  },
  {
    name: 'a node whose clock steps by an hour',
    needs: ['postgres', 'faketime'],
    async run(seed, scale) {
      const folder = temporaryFolder()
      const file = join(folder.path, 'clock')
      writeFileSync(file, '+0s')
      const settings = (node: number): Record<string, string> =>
        node === 0
          ? {}
          : {
              LD_PRELOAD: FAKETIME,
              FAKETIME_TIMESTAMP_FILE: file,
              FAKETIME_NO_CACHE: '1',
              DONT_FAKE_MONOTONIC: '1',
            }
      try {
        return await withWorld(seed, { engine: 'postgres', settings }, world =>
          world.underLoad(async () => {
            for (const step of ['+3600s', '-3600s', '+0s']) {
              await wait(3 * SECOND * Math.max(0.3, scale))
              writeFileSync(file, step)
              world.faults++
            }
            await wait(2 * SECOND)
          }),
        )
      } finally {
        folder.remove()
      }
    },
  },
  {
    name: 'slow, silent and flooding clients',
    needs: [],
    short: 0.3,
    run: (seed, scale) =>
      withWorld(seed, { engine: 'sqlite' }, world =>
        world.underLoad(async () => {
          const port = Number(new URL(world.origins[0]!).port)
          const sockets = Array.from({ length: 300 * scale }, (_, n) => {
            const socket = connect(port, '127.0.0.1').on('error', () => {})
            // A third of them sends nothing, a third a partial header, a third a partial body.
            if (n % 3 === 1) socket.write('GET /livez HTTP/1.1\r\nHost: x\r\nX-')
            if (n % 3 === 2)
              socket.write(
                'POST /auth/refresh HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{',
              )
            return socket
          })
          world.faults += sockets.length
          const flood = Array.from({ length: 20 }, async () => {
            for (let n = 0; n < 100 * scale; n++) {
              await call(world.origins[0]!, 'POST', '/auth/agent-token', { body: { api_key: 'x' } }).catch(
                () => {},
              )
            }
          })
          await Promise.all([...flood, wait(6 * SECOND * scale)])
          for (const socket of sockets) socket.destroy()
        }),
      ),
  },
  { name: 'disk full, SQLite', needs: ['tmpfs'], run: diskFull },
  {
    name: 'the n-th store call fails, SQLite',
    needs: [],
    short: 0.25,
    run: (seed, scale) => failNthStoreCall('sqlite', seed, scale),
  },
  {
    name: 'the n-th store call fails, PostgreSQL',
    needs: ['postgres'],
    run: (seed, scale) => failNthStoreCall('postgres', seed, scale),
  },
  { name: 'rolling restart behind a balancer', needs: ['postgres'], run: rollingRestart },
  {
    name: 'agents resume through breaks, restarts, partitions and crashes, events over PostgreSQL',
    needs: ['postgres'],
    run: (seed, scale) => resumeAgents('postgres', seed, scale),
  },
  {
    name: 'agents resume through breaks, restarts, partitions and crashes, events over Redis',
    needs: ['postgres', 'redis'],
    run: (seed, scale) => resumeAgents('redis', seed, scale),
  },
  {
    name: 'rolling upgrade from the previous version, events over PostgreSQL',
    needs: ['postgres', 'previous version'],
    run: (seed, scale) => rollingUpgrade('postgres', seed, scale),
  },
  {
    name: 'rolling upgrade from the previous version, events over Redis',
    needs: ['postgres', 'redis', 'previous version'],
    run: (seed, scale) => rollingUpgrade('redis', seed, scale),
  },
]

export const FAKETIME = '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1'
