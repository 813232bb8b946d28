import { test } from 'node:test'
import { until } from '../support/patience.ts'
import { connect, makeKey, open, tokenOf } from './fixture.ts'
import { fuzzFrames } from './support/frame-fuzzer.ts'

test('fuzzed frames for 3 s neither crash the hub, leak connections nor block other agents (60 s: npm run test:slow)', async t => {
  const { services, url, port, key, hub } = await open('sqlite', t)
  // The key of another user: the connections of one user share a limit of frames, which the fuzzer exceeds.
  const { user } = await services.signIn('bob@example.com')
  const witness = await connect(services, url, await makeKey(services, user.id))
  const seed = Number(process.env.FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31))
  t.diagnostic(`FUZZ_SEED=${seed}`)
  const tokens = [await tokenOf(services, key)]
  const report = await fuzzFrames({ port, tokens, witness, seconds: 3, seed })
  t.diagnostic(JSON.stringify(report))
  await until('the fuzzer is gone', () => hub.connectionCount === 1)
  await witness.flush()
})
