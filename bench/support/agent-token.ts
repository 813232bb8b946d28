const HEADER = encode(
  JSON.stringify({ alg: 'EdDSA', typ: 'agent_ws', kid: '0198c9f2-0000-7000-8000-000000000000' }),
)

/** An agent token without its signature, as long as one of the service. @param tokenNumber different for each token */
export function unsignedAgentToken(
  key: { id: string; userId: string; appId: string },
  tokenNumber: number,
): string {
  const now = Math.floor(Date.now() / 1000)
  const claims = {
    type: 'agent_ws',
    iss: 'http://localhost:8080',
    aud: 'http://localhost:8080/hub',
    sub: key.userId,
    agent_id: key.userId,
    app_id: key.appId,
    key_id: key.id,
    iat: now,
    nbf: now,
    exp: now + 900,
    jti: `0198c9f2-0000-7000-8000-${String(tokenNumber).padStart(12, '0')}`,
  }
  return `${HEADER}.${encode(JSON.stringify(claims))}`
}

function encode(text: string): string {
  return Buffer.from(text).toString('base64url')
}
