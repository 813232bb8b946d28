import { type AsymmetricKeyDetails, type KeyObject, verify as verifySignature } from 'node:crypto'
import { type App, isSelfDescribed } from '../apps/app.ts'
import { createReadLimits } from '../clients/read-limits.ts'
import { type Clock, MINUTE, SECOND } from '../clock.ts'
import type { KnownNetworks } from '../known-networks.ts'
import { createOutgoing } from '../outgoing/outgoing.ts'
import { sha256 } from '../secrets.ts'
import type { Storage } from '../store.ts'
import { type ClientKey, createKeySets } from './key-sets.ts'

/** Maximum length of an assertion in characters. */
const MAX_LENGTH = 4096
/** Longest accepted time until an assertion expires, so that used assertions need not be stored for long. */
const MAX_LIFETIME = 10 * MINUTE
/** Tolerance for a client's clock that is ahead. */
const LEEWAY = 30 * SECOND

/**
 * The accepted algorithms, each with a check of the key: the header of an assertion must not choose an algorithm that
 * the key is not for (RFC 8725 section 3.1).
 */
const ALGS: Record<string, { hash: string | null; fits(key: KeyObject): boolean }> = {
  EdDSA: { hash: null, fits: key => key.asymmetricKeyType === 'ed25519' },
  // A newer name for EdDSA with this curve (RFC 9864).
  Ed25519: { hash: null, fits: key => key.asymmetricKeyType === 'ed25519' },
  ES256: {
    hash: 'sha256',
    fits: key => key.asymmetricKeyType === 'ec' && key.asymmetricKeyDetails?.namedCurve === 'prime256v1',
  },
  RS256: {
    hash: 'sha256',
    fits: key => key.asymmetricKeyType === 'rsa' && isUsualRsa(key.asymmetricKeyDetails ?? {}),
  },
}

/**
 * Whether an RSA key has a usual size, which bounds the cost of a verification: with a very long modulus or exponent
 * each assertion could block this node for a second.
 */
function isUsualRsa({ modulusLength = 0, publicExponent = 0n }: AsymmetricKeyDetails): boolean {
  return modulusLength >= 2048 && modulusLength <= 4096 && publicExponent < 2n ** 32n
}

export interface ClientAssertionDeps {
  storage: Storage
  clock: Clock
  publicUrl: string
  /** Networks, besides the public Internet, in which key sets of clients may be. */
  privateNetworks: readonly string[]
  knownNetworks: Pick<KnownNetworks, 'isKnown'>
  findApp(id: string, network: string): Promise<App | null>
}

/**
 * Returns the app that an assertion authenticates. Null if the assertion is invalid or was used before, if its client
 * is unknown, public, without `jwks_uri` or not the given `clientId`, and if the client's keys cannot be fetched.
 */
export type VerifyAssertion = (
  assertion: string,
  clientId: string | undefined,
  network: string,
) => Promise<App | null>

/** Authenticates clients by `private_key_jwt` (RFC 7523 section 3, OpenID Connect Core section 9). */
export function createClientAssertions(deps: ClientAssertionDeps): VerifyAssertion {
  const { storage, clock, publicUrl, findApp } = deps
  const call = createOutgoing(deps.privateNetworks)
  const keySets = createKeySets({ call, clock, mayRead: createReadLimits(deps) })
  const audiences = [publicUrl, `${publicUrl}/oauth/token`, `${publicUrl}/oauth/par`]

  return async (assertion, clientId, network) => {
    const jwt = parse(assertion)
    const id = jwt?.claims.sub
    if (!jwt || typeof id !== 'string' || jwt.claims.iss !== id) return null
    if (clientId !== undefined && clientId !== id) return null
    const app = await findApp(id, network)
    if (!app?.jwksUri || app.isPublic || !areClaimsValid(jwt.claims)) return null
    const urlProvider = isSelfDescribed(id) ? 'client' : 'operator'
    const keys = await keySets.keysOf(app.jwksUri, jwt.kid, { urlProvider, network })
    if (!keys.some(key => isSignedBy(jwt, key))) return null
    const { jti, exp } = jwt.claims
    const isFirstUse = await storage.store.clientAssertions.use(id, sha256(String(jti)), Number(exp) * SECOND)
    return isFirstUse ? app : null
  }

  function areClaimsValid({ aud, exp, iat = 0, nbf = 0, jti }: Claims): boolean {
    const isForUs = (Array.isArray(aud) ? aud : [aud]).some(each => audiences.includes(each as string))
    if (!isForUs || typeof jti !== 'string' || jti === '') return false
    if (typeof exp !== 'number' || typeof iat !== 'number' || typeof nbf !== 'number') return false
    const now = clock.now()
    if (exp * SECOND <= now || exp * SECOND > now + MAX_LIFETIME) return false
    return Math.max(iat, nbf) * SECOND <= now + LEEWAY
  }
}

type Claims = Record<string, unknown>

interface Assertion {
  alg: string
  kid: string | undefined
  claims: Claims
  signed: string
  signature: Buffer
}

function parse(text: string): Assertion | null {
  const [head = '', body = '', tail = '', ...rest] = text.split('.')
  if (text.length > MAX_LENGTH || rest.length > 0) return null
  const [header, claims] = [objectOf(head), objectOf(body)]
  if (!header || !claims || typeof header.alg !== 'string' || !Object.hasOwn(ALGS, header.alg)) return null
  // `crit` names extensions that must be understood; none is supported (RFC 7515 section 4.1.11).
  if (header.crit !== undefined) return null
  const kid = typeof header.kid === 'string' ? header.kid : undefined
  const signature = Buffer.from(tail, 'base64url')
  return { alg: header.alg, kid, claims, signed: `${head}.${body}`, signature }
}

function isSignedBy({ alg, kid, signed, signature }: Assertion, key: ClientKey): boolean {
  const { hash, fits } = ALGS[alg]!
  if ((kid !== undefined && key.kid !== kid) || !allowsAlg(key, alg) || !fits(key.publicKey)) return false
  return verifySignature(
    hash,
    Buffer.from(signed),
    { key: key.publicKey, dsaEncoding: 'ieee-p1363' },
    signature,
  )
}

function allowsAlg({ alg }: ClientKey, assertionAlg: string): boolean {
  return alg === undefined || alg === assertionAlg || (alg.startsWith('Ed') && assertionAlg.startsWith('Ed'))
}

function objectOf(segment: string): Claims | null {
  try {
    const value: unknown = JSON.parse(Buffer.from(segment, 'base64url').toString())
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Claims) : null
  } catch {
    return null
  }
}
