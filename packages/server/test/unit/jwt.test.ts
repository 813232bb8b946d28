import assert from 'node:assert/strict'
import { createHmac, createPublicKey, randomBytes } from 'node:crypto'
import { createRequire, registerHooks } from 'node:module'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { compactVerify, createLocalJWKSet, importJWK, jwtVerify, SignJWT } from 'jose'
import { createLog } from '../../src/log.ts'
import type { PublicJwk } from '../../src/signing-keys/algorithms.ts'
import { keyPairOf, sign, signWithNode, verify } from '../../src/signing-keys/ed25519.ts'
import { createJwt, type Jwt, MAX_JWT_LENGTH } from '../../src/signing-keys/jwt.ts'
import { createSigner } from '../../src/signing-keys/signer.ts'
import type { SigningKeys } from '../../src/signing-keys/signing-keys.ts'
import { createTestClock } from '../support/clock.ts'

const ISSUER = 'https://keyway.test'
const AUDIENCE = `${ISSUER}/hub`
const KID = '0198f0aa-0000-7000-8000-000000000001'
const EXPECTED = { typ: 'agent_ws', audience: AUDIENCE } as const

const keyPair = keyPairOf(Buffer.alloc(32, 1))
const attackerKeyPair = keyPairOf(Buffer.alloc(32, 2))
const jwk: PublicJwk = {
  kty: 'OKP',
  crv: 'Ed25519',
  x: keyPair.publicKey.toString('base64url'),
  kid: KID,
  alg: 'EdDSA',
  use: 'sig',
}
const clock = createTestClock()
const now = () => Math.floor(clock.now() / 1000)

const signingKey = { kid: KID, alg: 'EdDSA', secretKey: keyPair.secretKey } as const

/** Signing keys with a single fixed key, so that these tests are about tokens only. */
const signingKeys: SigningKeys = {
  load: async () => {},
  reload: async () => {},
  start() {},
  stop() {},
  current: () => signingKey,
  currentOf: async () => signingKey,
  find: async kid => (kid === KID ? signingKey : null),
  jwks: () => ({ keys: [jwk] }),
  rotate: async () => ({ kid: KID, keys: [], signsFrom: 0 }),
}
/** The signing node, which caches the tokens that it issued. */
const jwt: Jwt = createJwt({ signingKeys, signer: createSigner(createLog('silent')), clock, issuer: ISSUER })

/** Verifies on the signing node and on one that sees every token for the first time, and asserts the same result. */
async function verifyOnBothNodes(token: string, expected: Parameters<Jwt['verify']>[1] = EXPECTED) {
  const otherNode = createJwt({
    signingKeys,
    signer: createSigner(createLog('silent')),
    clock,
    issuer: ISSUER,
  })
  const claims = await jwt.verify(token, expected)
  assert.deepEqual(await otherNode.verify(token, expected), claims)
  return claims
}

function claims(change: Record<string, unknown> = {}): Record<string, unknown> {
  const issuedAt = now()
  return {
    type: 'agent_ws',
    iss: ISSUER,
    aud: AUDIENCE,
    sub: 'owner',
    iat: issuedAt,
    nbf: issuedAt,
    exp: issuedAt + 900,
    jti: 'one',
    ...change,
  }
}

const encode = (text: string) => Buffer.from(text).toString('base64url')
const OUR_HEADER = { alg: 'EdDSA', typ: 'agent_ws', kid: KID }

/** A token with any content, signed with the service's key or `secretKey`. */
function forge(header: string | object, payload: string | object, secretKey = keyPair.secretKey): string {
  const text = (part: string | object) => encode(typeof part === 'string' ? part : JSON.stringify(part))
  const input = `${text(header)}.${text(payload)}`
  return `${input}.${sign(Buffer.from(input), secretKey).toString('base64url')}`
}

async function assertRefused(token: string, what = 'this token is refused'): Promise<void> {
  assert.equal(await verifyOnBothNodes(token), null, what)
}

describe('signing', () => {
  test('a signed token is verified with all its claims', async () => {
    assert.deepEqual(await verifyOnBothNodes(jwt.sign('agent_ws', claims())), claims())
  })

  test('an independent implementation verifies our tokens with the published keys', async () => {
    const token = jwt.sign('agent_ws', claims({ exp: now() + 60 }))
    const { payload, protectedHeader } = await jwtVerify(token, createLocalJWKSet(signingKeys.jwks()), {
      currentDate: new Date(clock.now()),
      issuer: ISSUER,
      audience: AUDIENCE,
      typ: 'agent_ws',
    })
    assert.equal(payload.sub, 'owner')
    assert.deepEqual(protectedHeader, OUR_HEADER)
  })

  test('a token signed by an independent implementation is verified', async () => {
    const d = Buffer.alloc(32, 1).toString('base64url')
    const key = await importJWK({ ...jwk, d }, 'EdDSA')
    const token = await new SignJWT(claims()).setProtectedHeader(OUR_HEADER).sign(key)
    assert.equal((await verifyOnBothNodes(token))?.sub, 'owner')
  })

  test('libsodium and Node create the same signature, so either can be used', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 600 }), bytes => {
        const message = Buffer.from(bytes)
        assert.deepEqual(sign(message, keyPair.secretKey), signWithNode(message, keyPair.secretKey))
      }),
    )
  })

  test('a platform without libsodium signs and verifies with Node', async () => {
    const { cache, resolve } = createRequire(import.meta.url)
    const path = resolve('sodium-native')
    const loadedModule = cache[path]
    delete cache[path]
    const hooks = registerHooks({
      resolve(specifier, context, nextResolve) {
        if (specifier === 'sodium-native') throw new Error('no build for this platform')
        return nextResolve(specifier, context)
      },
    })
    const moduleWithoutSodium: typeof import('../../src/signing-keys/ed25519.ts') = await import(
      `../../src/signing-keys/ed25519.ts?without-libsodium=${randomBytes(4).toString('hex')}`
    )
    hooks.deregister()
    cache[path] = loadedModule
    const { secretKey } = moduleWithoutSodium.keyPairOf(Buffer.alloc(32, 1))
    const message = randomBytes(100)
    assert.deepEqual(moduleWithoutSodium.sign(message, secretKey), sign(message, keyPair.secretKey))
    assert.equal(moduleWithoutSodium.verify(message, sign(message, keyPair.secretKey), secretKey), true)
  })

  test('a signature is valid for one message, one key and one encoding', () => {
    const { secretKey } = keyPairOf(randomBytes(32))
    const message = randomBytes(100)
    const signature = sign(message, secretKey)
    assert.equal(verify(message, signature, secretKey), true)
    for (let bit = 0; bit < signature.length * 8; bit++) {
      const changedSignature = Buffer.from(signature)
      changedSignature[bit >> 3]! ^= 1 << (bit & 7)
      assert.equal(verify(message, changedSignature, secretKey), false)
    }
    assert.equal(verify(randomBytes(100), signature, secretKey), false)
    assert.equal(verify(message, signature, keyPairOf(randomBytes(32)).secretKey), false)
    for (const other of [
      signature.subarray(1),
      Buffer.concat([signature, Buffer.alloc(1)]),
      Buffer.alloc(0),
    ]) {
      assert.equal(verify(message, other, secretKey), false)
    }
  })

  test('RFC 8032 section 7.1, test 1: the key pair and signature of a known seed', () => {
    const seed = Buffer.from('9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60', 'hex')
    const { publicKey, secretKey } = keyPairOf(seed)
    assert.equal(
      publicKey.toString('hex'),
      'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
    )
    assert.equal(
      sign(Buffer.alloc(0), secretKey).toString('hex'),
      'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
    )
  })
})

describe('algorithms and keys', () => {
  test('JWT-01: alg none in any spelling is refused, with any signature', async () => {
    const [, , signature] = jwt.sign('agent_ws', claims()).split('.')
    for (const alg of ['none', 'None', 'nOnE', 'NONE', '', null]) {
      const input = `${encode(JSON.stringify({ ...OUR_HEADER, alg }))}.${encode(JSON.stringify(claims()))}`
      for (const token of [`${input}.`, input, `${input}.${signature}`]) await assertRefused(token, `${alg}`)
      await assertRefused(forge({ ...OUR_HEADER, alg }, claims()), `${alg} signed with our key`)
    }
  })

  test('JWT-02: the public key is no HMAC secret, in whatever spelling', async () => {
    const key = createPublicKey({ key: jwk as never, format: 'jwk' })
    const pem = key.export({ type: 'spki', format: 'pem' }).toString()
    const secrets = [
      pem,
      `${pem}\n`,
      ` ${pem}`,
      pem.trim(),
      JSON.stringify(jwk),
      jwk.x,
      keyPair.publicKey,
      key.export({ type: 'spki', format: 'der' }),
    ]
    for (const [alg, hash] of [
      ['HS256', 'sha256'],
      ['HS384', 'sha384'],
      ['HS512', 'sha512'],
      ['EdDSA', 'sha512'],
    ] as const) {
      const input = `${encode(JSON.stringify({ ...OUR_HEADER, alg }))}.${encode(JSON.stringify(claims()))}`
      for (const secret of secrets) {
        await assertRefused(`${input}.${createHmac(hash, secret).update(input).digest('base64url')}`, alg)
      }
    }
  })

  test('JWT-02: a header with another algorithm is refused even with a valid signature', async () => {
    for (const alg of ['RS256', 'ES256', 'PS256', 'Ed25519', 'Ed448', 'eddsa', 'EdDSA ', ['EdDSA']]) {
      await assertRefused(forge({ ...OUR_HEADER, alg }, claims()), String(alg))
    }
  })

  test('JWT-03: a key embedded in the token is never used', async () => {
    const x = attackerKeyPair.publicKey.toString('base64url')
    for (const extra of [
      { jwk: { kty: 'OKP', crv: 'Ed25519', x } },
      { jku: 'https://attacker.test/jwks.json' },
      { x5u: 'https://attacker.test/cert.pem' },
      { x5c: ['MIIB'] },
    ]) {
      await assertRefused(forge({ ...OUR_HEADER, ...extra }, claims(), attackerKeyPair.secretKey))
      await assertRefused(forge({ ...OUR_HEADER, ...extra }, claims()))
    }
  })

  test('an unknown key id is refused, also a path, a prototype property or an empty one', async () => {
    for (const kid of [
      '',
      'x',
      '../../dev/null',
      "' or 1=1",
      '__proto__',
      'constructor',
      null,
      1,
      [KID],
      undefined,
    ]) {
      await assertRefused(forge({ ...OUR_HEADER, kid }, claims()), String(kid))
    }
  })

  test('a signature of another key under a known key id is refused', () =>
    assertRefused(forge(OUR_HEADER, claims(), attackerKeyPair.secretKey)))

  test('crit, b64 and zip are refused', async () => {
    for (const extra of [{ crit: [] }, { crit: ['b64'], b64: false }, { zip: 'DEF' }]) {
      await assertRefused(forge({ ...OUR_HEADER, ...extra }, claims()))
    }
  })
})

describe('type, audience, issuer', () => {
  test('JWT-06: a token of one type is not accepted in the other’s place', async () => {
    const accessToken = jwt.sign('at+jwt', claims())
    assert.equal(await verifyOnBothNodes(accessToken), null)
    assert.ok(await verifyOnBothNodes(accessToken, { ...EXPECTED, typ: 'at+jwt' }))
    for (const typ of ['JWT', 'AGENT_WS', 'application/agent_ws', 'agent_ws ', null, undefined]) {
      await assertRefused(forge({ ...OUR_HEADER, typ }, claims()), String(typ))
    }
  })

  test('JWT-07: a token for another audience is refused', async () => {
    for (const aud of [
      ISSUER,
      `${AUDIENCE}/`,
      `${AUDIENCE}x`,
      'hub',
      '',
      [],
      [AUDIENCE],
      [AUDIENCE, 'x'],
      null,
      1,
    ]) {
      await assertRefused(forge(OUR_HEADER, claims({ aud })), JSON.stringify(aud))
    }
  })

  test('JWT-07: a token of another issuer is refused', async () => {
    for (const iss of [`${ISSUER}/`, 'http://keyway.test', 'https://KEYWAY.test', '', [ISSUER], null]) {
      await assertRefused(forge(OUR_HEADER, claims({ iss })), JSON.stringify(iss))
    }
  })

  test('a token without a required claim is refused', async () => {
    for (const name of ['iss', 'aud', 'sub', 'iat', 'exp', 'jti', 'type']) {
      const { [name]: _gone, ...rest } = claims()
      await assertRefused(forge(OUR_HEADER, rest), name)
    }
  })
})

describe('times', () => {
  test('a token is valid until the last millisecond before exp', async () => {
    const localClock = createTestClock()
    const localJwt = createJwt({
      signingKeys,
      signer: createSigner(createLog('silent')),
      clock: localClock,
      issuer: ISSUER,
    })
    const exp = Math.floor(localClock.now() / 1000) + 900
    const token = localJwt.sign('agent_ws', claims({ exp }))
    localClock.set(exp * 1000 - 1)
    assert.ok(await localJwt.verify(token, EXPECTED))
    localClock.set(exp * 1000)
    assert.equal(await localJwt.verify(token, EXPECTED), null)
  })

  test('a token from a clock up to 5 seconds ahead is accepted', async () => {
    const tokenFromClockAhead = (ahead: number) =>
      forge(OUR_HEADER, claims({ iat: now() + ahead, nbf: now() + ahead, exp: now() + 900 }))
    assert.ok(await verifyOnBothNodes(tokenFromClockAhead(5)))
    await assertRefused(tokenFromClockAhead(6))
    await assertRefused(forge(OUR_HEADER, claims({ nbf: now() + 6 })))
    await assertRefused(forge(OUR_HEADER, claims({ iat: now() + 6 })))
  })

  test('JWT-08: exp must be a whole number of seconds, within the maximum lifetime', async () => {
    const issuedAt = now()
    const invalidExpiries = [
      String(issuedAt + 900),
      issuedAt + 900.5,
      -1,
      0,
      issuedAt - 10,
      issuedAt,
      issuedAt + 315_360_000,
      Number.MAX_SAFE_INTEGER,
      null,
      true,
      [issuedAt + 900],
    ]
    for (const exp of invalidExpiries)
      await assertRefused(forge(OUR_HEADER, claims({ exp })), JSON.stringify(exp))
    const payloadWithHugeExp = JSON.stringify(claims()).replace(/"exp":\d+/, '"exp":1e400')
    await assertRefused(forge(OUR_HEADER, payloadWithHugeExp), '1e400')
  })

  test('a token lives a day at most, and its times may be as early as 1970', async () => {
    const tokenLasting = (seconds: number) => forge(OUR_HEADER, claims({ exp: now() + seconds }))
    assert.ok(await verifyOnBothNodes(tokenLasting(86_400)))
    await assertRefused(tokenLasting(86_401))
    assert.ok(await verifyOnBothNodes(forge(OUR_HEADER, claims({ nbf: 0 }))))
  })

  test('JWT-08: iat and nbf must be numbers', async () => {
    for (const value of ['1', null, {}, -1, 1.5])
      await assertRefused(forge(OUR_HEADER, claims({ iat: value })))
    for (const value of ['1', null, {}]) await assertRefused(forge(OUR_HEADER, claims({ nbf: value })))
  })
})

describe('canonical encoding', () => {
  test('JWT-12: a token with a duplicate member is refused even with a valid signature', async () => {
    const payload = JSON.stringify(claims())
    await assertRefused(forge(OUR_HEADER, payload.replace('{', '{"exp":1,')))
    await assertRefused(forge(OUR_HEADER, payload.replace(/}$/, ',"sub":"somebody"}')))
    await assertRefused(forge(`{"alg":"none",${JSON.stringify(OUR_HEADER).slice(1)}`, claims()))
    await assertRefused(forge(`{"kid":"x",${JSON.stringify(OUR_HEADER).slice(1)}`, claims()))
  })

  test('padding, white space, other alphabets and non-zero spare bits are refused', async () => {
    const token = jwt.sign('agent_ws', claims())
    const [header, payload, signature] = token.split('.') as [string, string, string]
    const lastCharacter = signature.at(-1)!
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    // 64 bytes are 86 characters; the last carries 4 spare bits.
    const equivalentCharacters = [...alphabet].filter(
      c =>
        c !== lastCharacter &&
        Buffer.from(signature.slice(0, -1) + c, 'base64url').equals(Buffer.from(signature, 'base64url')),
    )
    assert.ok(equivalentCharacters.length > 0)
    for (const c of equivalentCharacters)
      await assertRefused(`${header}.${payload}.${signature.slice(0, -1)}${c}`)
    for (const other of [
      ` ${token}`,
      `${token}\n`,
      `${token}=`,
      `${token}==`,
      `${header}=.${payload}.${signature}`,
    ]) {
      await assertRefused(other)
    }
    await assertRefused(forge(`${JSON.stringify(OUR_HEADER)} `, claims()))
    await assertRefused(forge(OUR_HEADER, `${JSON.stringify(claims())} `))
  })

  test('a signature with the group order added to its scalar is refused', async () => {
    const [header, payload, signature] = jwt.sign('agent_ws', claims()).split('.') as [string, string, string]
    const bytes = Buffer.from(signature, 'base64url')
    const groupOrder = 2n ** 252n + 27742317777372353535851937790883648493n
    const scalar = BigInt(`0x${Buffer.from(bytes.subarray(32)).reverse().toString('hex')}`) + groupOrder
    const movedScalar = Buffer.from(scalar.toString(16).padStart(64, '0'), 'hex').reverse()
    await assertRefused(
      `${header}.${payload}.${Buffer.concat([bytes.subarray(0, 32), movedScalar]).toString('base64url')}`,
    )
  })

  test('no altered token is accepted', async () => {
    const token = jwt.sign('agent_ws', claims())
    const change = fc.tuple(fc.nat(token.length - 1), fc.string({ maxLength: 3 }), fc.nat(2))
    await fc.assert(
      fc.asyncProperty(change, async ([at, text, cut]) => {
        const alteredToken = token.slice(0, at) + text + token.slice(at + cut)
        const isAccepted = (await verifyOnBothNodes(alteredToken)) !== null
        assert.ok(!isAccepted || alteredToken === token)
      }),
      { numRuns: 300 },
    )
  })

  test('arbitrary text and arbitrary JSON in three parts are refused without throwing', async () => {
    const part = fc.oneof(fc.json().map(encode), fc.base64String(), fc.string())
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          fc.string(),
          fc.tuple(part, part, part).map(parts => parts.join('.')),
        ),
        async token => {
          assert.equal(await verifyOnBothNodes(token), null)
        },
      ),
      { numRuns: 300 },
    )
  })
})

test('JWT-13: other JOSE serializations and oversized tokens are refused', async () => {
  const token = jwt.sign('agent_ws', claims())
  const [header, payload, signature] = token.split('.') as [string, string, string]
  for (const other of [
    '',
    '.',
    '..',
    '...',
    `${header}.${payload}`,
    `${token}.${signature}`,
    `${header}..${payload}.${signature}.${signature}`,
    JSON.stringify({ protected: header, payload, signature }),
    `${'A'.repeat(1_000_000)}.${payload}.${signature}`,
    forge(OUR_HEADER, claims({ padding: 'x'.repeat(MAX_JWT_LENGTH) })),
    forge(OUR_HEADER, 'null'),
    forge(OUR_HEADER, '[]'),
    forge('null', claims()),
    forge('"x"', claims()),
  ]) {
    await assertRefused(other)
  }
  for (const other of [undefined, null, 1, {}, [token]]) await assertRefused(other as never)
})

test('a signature covers exactly the bytes of the token', async () => {
  const token = jwt.sign('agent_ws', claims())
  const { payload } = await compactVerify(token, createPublicKey({ key: jwk as never, format: 'jwk' }))
  assert.deepEqual(JSON.parse(Buffer.from(payload).toString()), claims())
})
