import { DatabaseSync } from 'node:sqlite'
import { keyPairOf, sign } from '../../packages/server/src/signing-keys/ed25519.ts'
import { unsignedAgentToken } from './agent-token.ts'

/** The steps of an exchange that could run on another thread: the indexed read, the claims and the signature. */
export interface ExchangeSteps {
  /** @returns the token; null for an unknown key */
  issueToken(keyHash: string): string | null
  close(): void
}

export function openExchangeSteps(file: string): ExchangeSteps {
  const database = new DatabaseSync(file, { readOnly: true })
  const find = database.prepare('select id, user_id, app_id from api_keys where key_hash = ?')
  find.setReturnArrays(true)
  const { secretKey } = keyPairOf(Buffer.alloc(32, 7))
  let tokenCount = 0
  return {
    issueToken(keyHash) {
      const row = find.get(keyHash) as unknown as [string, string, string] | undefined
      if (!row) return null
      const [keyId, userId, appId] = row
      const message = unsignedAgentToken({ id: keyId, userId, appId }, tokenCount++)
      return `${message}.${sign(Buffer.from(message), secretKey).toString('base64url')}`
    },
    close: () => database.close(),
  }
}
