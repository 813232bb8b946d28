import { equals, sha256 } from '../secrets.ts'

/** Syntax of a code challenge: base64url of a SHA-256 (RFC 7636 section 4.2). */
const CHALLENGE_SYNTAX = /^[A-Za-z0-9_-]{43}$/
/** Syntax of a code verifier (RFC 7636 section 4.1). */
const VERIFIER_SYNTAX = /^[A-Za-z0-9\-._~]{43,128}$/

export function isCodeChallenge(text: string): boolean {
  return CHALLENGE_SYNTAX.test(text)
}

/**
 * Whether the verifier of the token request matches the challenge of the authorization request, or neither was sent. A
 * verifier without a challenge is refused: somebody removed the challenge from the authorization request (RFC 9700
 * section 4.8.2).
 */
export function provesChallenge(challenge: string | null, verifier: string | null): boolean {
  if (challenge === null || verifier === null) return challenge === verifier
  return VERIFIER_SYNTAX.test(verifier) && equals(sha256(verifier), challenge)
}
