/** The claims of an agent token. */
export interface AgentTokenClaims {
    type: 'agent_ws';
    iss: string;
    aud: string;
    sub: string;
    /** The owner's id; equals `sub`. */
    agent_id: string;
    app_id: string;
    key_id: string;
    /** Space separated; absent when unrestricted. */
    scope?: string;
    iat: number;
    nbf: number;
    exp: number;
    jti: string;
}
/** The claims of an access token (RFC 9068). */
export interface AccessTokenClaims {
    type: 'access';
    iss: string;
    aud: string;
    sub: string;
    client_id: string;
    /** Space separated; present in tokens of apps, absent after a person's sign-in. */
    scope?: string;
    sid: string;
    role: 'user' | 'support' | 'admin';
    iat: number;
    exp: number;
    jti: string;
}
export interface VerifyOptions {
    /** Keyway's public URL: must equal the token's `iss`, and its `/.well-known/jwks.json` has the keys. */
    issuer: string;
    /** Must equal the token's `aud`: `<public url>/hub`, or the one registered for your app. */
    audience: string;
    fetch?: typeof fetch | undefined;
    /** Milliseconds since 1970. Default: the system's clock. */
    now?: (() => number) | undefined;
}
/**
 * Verifies an agent token: signature, algorithm, type, issuer, audience, times. It does not check whether the key was
 * revoked since; services that need this use `GET /v1/revocations` or `/auth/introspect`.
 *
 * @throws KeywayError `invalid_token` if it is not valid, `unavailable` if the issuer's keys cannot be fetched
 */
export declare function verifyAgentToken(token: string, options: VerifyOptions): Promise<AgentTokenClaims>;
/**
 * Verifies an access token, like `verifyAgentToken`.
 *
 * @param options `audience` defaults to the issuer
 * @throws KeywayError `invalid_token` or `unavailable`
 */
export declare function verifyAccessToken(token: string, options: Omit<VerifyOptions, 'audience'> & {
    audience?: string;
}): Promise<AccessTokenClaims>;
