export interface Jwt {
  /** Signs on the hot path. `typ` goes into the header beside `alg` and `kid`. */
  sign(typ: 'agent_ws' | 'at+jwt', claims: Record<string, unknown>): string
  /**
   * The claims of a token that one of our own keys signed with EdDSA, of this header type, issuer and audience,
   * inside its times, in canonical encoding. Null for anything else, whatever it is.
   */
  verify(
    token: string,
    expected: { typ: 'agent_ws' | 'at+jwt'; audience: string },
  ): Promise<Record<string, unknown> | null>
}
