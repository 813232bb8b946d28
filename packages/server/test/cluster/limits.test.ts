import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { postgresMissing } from '../support/engines.ts'
import { startNodeProcess } from '../support/node-processes.ts'
import {
  type CallResult,
  call,
  createPrintedLinks,
  exchange,
  freshPostgres,
  signIn,
} from '../support/nodes.ts'

const LIMIT = 40
/** Few, since many new connections of a network that is refused often are closed (http/connection-guard.ts). */
const CONCURRENT_EXCHANGES = 20

describe('limits over nodes as processes', { skip: postgresMissing() }, () => {
  test('a limit is exact over two processes, also when one is killed and restarted', async t => {
    const url = await freshPostgres(t)
    const links = createPrintedLinks()
    const startNode = () => startNodeProcess(t, { KEYWAY_DATABASE_URL: url }, links)
    const [a, b] = await Promise.all([startNode(), startNode()])
    const session = await signIn(a.origin, links, 'limited@example.com')
    const body = { limits: { requests: [{ limit: LIMIT, per: 'day' }] } }
    const createdKey = await call(a.origin, 'POST', '/v1/api-keys', { token: session.access_token, body })
    const countPassed = async (origins: string[], attempts: number) => {
      const answers: CallResult[] = []
      while (answers.length < attempts)
        answers.push(
          ...(await Promise.all(
            Array.from({ length: Math.min(CONCURRENT_EXCHANGES, attempts - answers.length) }, (_, n) =>
              exchange(origins[n % origins.length]!, createdKey.body.key),
            ),
          )),
        )
      // An overloaded machine may answer 503, which lets no request through either.
      for (const { status } of answers) assert.ok([200, 429, 503].includes(status), String(status))
      return answers.filter(({ status }) => status === 200).length
    }
    let passedCount = await countPassed([a.origin, b.origin], 10)
    await a.served.end('SIGKILL')
    passedCount += await countPassed([b.origin], 10)
    const restartedNode = await startNode()
    passedCount += await countPassed([restartedNode.origin, b.origin], 100)
    assert.ok(passedCount <= LIMIT, `${passedCount} of ${LIMIT}`)
    assert.ok(passedCount > 0)
  })
})
