import { decodeBase64url } from './base64url.js';
import { KeywayError } from './errors.js';
import { Jwks } from './jwks.js';
import { TOKEN_ALGS } from './verification-key.js';
/** Clocks of two services may differ by this much. */
const CLOCK_TOLERANCE_SECONDS = 5;
const MAX_TOKEN_LENGTH = 8192;
/**
 * Verifies an agent token: signature, algorithm, type, issuer, audience, times. It does not check whether the key was
 * revoked since; services that need this use `GET /v1/revocations` or `/auth/introspect`.
 *
 * @throws KeywayError `invalid_token` if it is not valid, `unavailable` if the issuer's keys cannot be fetched
 */
export async function verifyAgentToken(token, options) {
    const claims = await verify(token, options, { typ: 'agent_ws', type: 'agent_ws' });
    requireStrings(claims, ['agent_id', 'app_id', 'key_id']);
    if (claims.agent_id !== claims.sub)
        throw invalidToken('agent_id is not sub');
    if (claims.scope !== undefined && typeof claims.scope !== 'string')
        throw invalidToken('scope is no string');
    return claims;
}
/**
 * Verifies an access token, like `verifyAgentToken`.
 *
 * @param options `audience` defaults to the issuer
 * @throws KeywayError `invalid_token` or `unavailable`
 */
export async function verifyAccessToken(token, options) {
    const audience = options.audience ?? options.issuer;
    const claims = await verify(token, { ...options, audience }, { typ: 'at+jwt', type: 'access' });
    requireStrings(claims, ['client_id', 'sid', 'role']);
    return claims;
}
async function verify(token, options, kind) {
    if (typeof token !== 'string' || token.length > MAX_TOKEN_LENGTH)
        throw invalidToken('it is no token');
    const parts = token.split('.');
    if (parts.length !== 3)
        throw invalidToken('it has not three parts');
    const [header, payload, signature] = parts;
    await checkSignature(`${header}.${payload}`, signature, checkHeader(header, kind.typ), options);
    const claims = parseObject(payload);
    checkClaims(claims, options, kind.type);
    return claims;
}
/** Keys that the header links to or embeds (jku, x5u, jwk) are never used. */
function checkHeader(part, typ) {
    const header = parseObject(part);
    if (!TOKEN_ALGS.includes(header.alg))
        throw invalidToken(`alg is not one of ${TOKEN_ALGS.join(', ')}`);
    if (header.typ !== typ)
        throw invalidToken(`typ is not ${typ}`);
    if (header.crit !== undefined)
        throw invalidToken('it has critical extensions');
    if (typeof header.kid !== 'string')
        throw invalidToken('kid is missing');
    return { kid: header.kid, alg: header.alg };
}
async function checkSignature(signed, part, { kid, alg }, options) {
    const signature = decodeBase64url(part);
    if (!signature)
        throw invalidToken('the signature is malformed');
    const key = await jwksOf(options).key(kid);
    if (!key)
        throw invalidToken('the issuer has no such key');
    // The algorithm is that of the key, never that of the token (RFC 8725 section 3.1).
    if (key.alg !== alg)
        throw invalidToken('alg is not that of the key');
    const isValid = await key.verify(new TextEncoder().encode(signed), signature);
    if (!isValid)
        throw invalidToken('the signature is wrong');
}
function checkClaims(claims, { issuer, audience, now = Date.now }, type) {
    if (claims.type !== type)
        throw invalidToken(`type is not ${type}`);
    if (claims.iss !== issuer)
        throw invalidToken('iss is another issuer');
    if (claims.aud !== audience)
        throw invalidToken('aud is another audience');
    requireStrings(claims, ['sub', 'jti']);
    const seconds = now() / 1000;
    const { iat, exp, nbf } = claims;
    if (!isInstant(iat) || iat > seconds + CLOCK_TOLERANCE_SECONDS)
        throw invalidToken('iat is missing or in the future');
    if (!isInstant(exp) || exp <= iat)
        throw invalidToken('exp is missing or before iat');
    if (exp <= seconds - CLOCK_TOLERANCE_SECONDS)
        throw invalidToken('it has expired');
    if (type === 'agent_ws' || nbf !== undefined) {
        if (!isInstant(nbf) || nbf > seconds + CLOCK_TOLERANCE_SECONDS)
            throw invalidToken('nbf is missing or in the future');
    }
}
/** A cache for each issuer (and each `fetch`, since tests pass their own), for the life of the process. */
const caches = new WeakMap();
function jwksOf({ issuer, fetch = globalThis.fetch }) {
    const jwksByIssuer = caches.get(fetch) ?? new Map();
    caches.set(fetch, jwksByIssuer);
    const jwks = jwksByIssuer.get(issuer) ?? new Jwks(`${issuer.replace(/\/$/, '')}/.well-known/jwks.json`, fetch);
    jwksByIssuer.set(issuer, jwks);
    return jwks;
}
function parseObject(part) {
    const bytes = decodeBase64url(part);
    if (!bytes)
        throw invalidToken('it is not in canonical base64url');
    try {
        const value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
        if (typeof value === 'object' && value !== null && !Array.isArray(value))
            return value;
    }
    catch {
        // reported below
    }
    throw invalidToken('it holds no JSON object');
}
function requireStrings(claims, names) {
    for (const name of names) {
        if (typeof claims[name] !== 'string' || claims[name] === '')
            throw invalidToken(`${name} is missing`);
    }
}
/** NumericDate (RFC 7519 section 2), whole seconds as Keyway writes it. */
function isInstant(value) {
    return Number.isSafeInteger(value) && value >= 0;
}
function invalidToken(reason) {
    return new KeywayError('invalid_token', `The token is not accepted: ${reason}.`, { status: 401 });
}
