import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import { createRemoteJWKSet, jwtVerify } from 'jose'
import { SIGNING_ALGS } from '../../src/signing-keys/signing-key.ts'
import { forEachEngine } from '../support/engines.ts'
import { GO_LIBRARIES, runGo } from '../support/go.ts'
import { patienceMs } from '../support/patience.ts'
import { caller } from '../support/services.ts'
import { newPerson, PYTHON, packageMissing, startRunning } from './running.ts'

const run = promisify(execFile)
const VERIFIERS = join(import.meta.dirname, 'verifiers')
const WITH_TIME_TO_COMPILE = { timeout: patienceMs(300_000) }

const NEW_KEY = { name: null, scopes: null, expiresAt: null, appId: 'service-sdk', allowedNetworks: [] }

interface VerificationOptions {
  jwks: string
  alg: string
  issuer: string
  audience: string
}

/** Verifies the token, and returns its claims. */
type Verifier = (token: string, expected: VerificationOptions) => Promise<Record<string, unknown>>

const pythonMissing = packageMissing('python3-jwt', [PYTHON, '-c', 'import jwt, cryptography'])
const goMissing = packageMissing('golang-github-golang-jwt-jwt-dev', [
  'ls',
  `${GO_LIBRARIES}/src/github.com/golang-jwt/jwt`,
])

forEachEngine(engine => {
  for (const [library, verify, skip] of [
    ['jose', verifyWithJose, false],
    ['python3-jwt', verifyWithPython, pythonMissing],
    ['golang-github-golang-jwt-jwt-dev', verifyWithGo, goMissing],
  ] as [string, Verifier, string | false][]) {
    test(`tokens of every algorithm verify with ${library}, and changed ones do not`, {
      skip,
      ...WITH_TIME_TO_COMPILE,
    }, async t => {
      const { url, server, ...web } = await startRunning(engine, t)
      const { apiKeys, apps, agentTokens } = server.services
      const { user } = await newPerson({ url, server, ...web }, 'ada@example.com')
      const { key } = await apiKeys.create(user.id, NEW_KEY, caller())
      for (const alg of SIGNING_ALGS) {
        const audience = `https://${alg.toLowerCase()}.example.com`
        await apps.register({ id: alg.toLowerCase(), name: alg, audience, tokenAlg: alg })
        const { token } = await agentTokens.exchange(key, audience, caller())
        const expected = { jwks: `${url}/.well-known/jwks.json`, alg, issuer: url, audience }
        const claims = await verify(token, expected)
        assert.equal(claims.sub, user.id, alg)
        const [head, payload, signature] = token.split('.') as [string, string, string]
        const changedPayload = payload.slice(0, -4) + (payload.endsWith('AAAA') ? 'BBBB' : 'AAAA')
        for (const wrong of [`${head}.${changedPayload}.${signature}`, `${head}.${payload}.`])
          await assert.rejects(verify(wrong, expected), alg)
        await assert.rejects(verify(token, { ...expected, audience: 'https://other.example.com' }), alg)
        await assert.rejects(verify(token, { ...expected, issuer: 'https://other.example.com' }), alg)
      }
    })
  }
})

async function verifyWithJose(token: string, { jwks, alg, issuer, audience }: VerificationOptions) {
  const keys = createRemoteJWKSet(new URL(jwks))
  return (await jwtVerify(token, keys, { algorithms: [alg], issuer, audience })).payload
}

function verifyWithPython(token: string, expected: VerificationOptions) {
  return verifyByProgram(PYTHON, [join(VERIFIERS, 'verify.py')], token, expected)
}

/** Passes the token on standard input, since every user of the machine can read the arguments of programs. */
async function verifyByProgram(
  program: string,
  words: string[],
  token: string,
  expected: VerificationOptions,
) {
  const { jwks, alg, issuer, audience } = expected
  const execution = run(program, [...words, jwks, alg, issuer, audience])
  execution.child.stdin!.end(token)
  return JSON.parse((await execution).stdout)
}

let compilation: Promise<string> | undefined
// `t.after` would remove the program after the first test, but later tests use it too.
after(async () => {
  if (compilation) rmSync(dirname(await compilation), { recursive: true, force: true })
})

async function verifyWithGo(token: string, expected: VerificationOptions) {
  compilation ??= compile()
  return verifyByProgram(await compilation, [], token, expected)
}

async function compile(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'keyway-go-'))
  const program = join(folder, 'verify')
  await runGo(['build', '-o', program, join(VERIFIERS, 'verify.go')], folder)
  return program
}
