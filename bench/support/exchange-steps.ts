import { DatabaseSync } from 'node:sqlite'
import { keyPairOf, sign } from '../../packages/server/src/signing-keys/ed25519.ts'

/** The steps of an exchange that could run on another thread: the indexed read, the claims and the signature. */
export interface ExchangeSteps {
  /** @returns the token; null for an unknown key */
  issueToken(keyHash: string): string | null
  close(): void
}

const HEADER = encode(
  JSON.stringify({ alg: 'EdDSA', typ: 'agent_ws', kid: '0198c9f2-0000-7000-8000-000000000000' }),
)

export function openExchangeSteps(file: string): ExchangeSteps {
  const database = new DatabaseSync(file, { readOnly: true })
  const find = database.prepare('select id, user_id, app_id from api_keys where key_hash = ?')
  find.setReturnArrays(true)
  const { secretKey } = keyPairOf(Buffer.alloc(32, 7))
  return {
    issueToken(keyHash) {
      const row = find.get(keyHash) as unknown as [string, string, string] | undefined
      if (!row) return null
      const [keyId, userId, appId] = row
      const now = Math.floor(Date.now() / 1000)
      const claims = {
        type: 'agent_ws',
        iss: 'http://localhost:8080',
        aud: 'http://localhost:8080/hub',
        sub: userId,
        agent_id: userId,
        app_id: appId,
        key_id: keyId,
        iat: now,
        nbf: now,
        exp: now + 900,
        jti: '0198c9f2-0000-7000-8000-000000000000',
      }
      const message = `${HEADER}.${encode(JSON.stringify(claims))}`
      return `${message}.${sign(Buffer.from(message), secretKey).toString('base64url')}`
    },
    close: () => database.close(),
  }
}

function encode(text: string): string {
  return Buffer.from(text).toString('base64url')
}
