import { hash } from 'node:crypto'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { DatabaseSync } from 'node:sqlite'
import { unsignedAgentToken } from './agent-token.ts'

/*
 * The floor (unavoidable work) of an exchange: node:http, one JSON.parse, one SHA-256, one indexed read, one Ed25519
 * signature by libsodium over a token of the same size, one answer. No routing, no validation, no expiry, no error but
 * 401. It reads the same database file as the service.
 */

const require = createRequire(new URL('../../packages/server/package.json', import.meta.url))
const sodium = require('sodium-native')

const database = new DatabaseSync(process.argv[2]!, { readOnly: true })
const findKey = database.prepare('select * from api_keys where key_hash = ?')
const publicKey = Buffer.alloc(32)
const secretKey = Buffer.alloc(64)
sodium.crypto_sign_keypair(publicKey, secretKey)
let tokenCount = 0

const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', chunk => chunks.push(chunk))
  request.on('end', () => {
    const { api_key } = JSON.parse(Buffer.concat(chunks).toString())
    const row = findKey.get(hash('sha256', api_key, 'base64url')) as Record<string, string> | undefined
    if (!row) {
      response.writeHead(401).end()
      return
    }
    const key = { id: row.id!, userId: row.user_id!, appId: row.app_id! }
    const message = unsignedAgentToken(key, tokenCount++)
    const signature = Buffer.allocUnsafe(64)
    sodium.crypto_sign_detached(signature, Buffer.from(message), secretKey)
    const token = `${message}.${signature.toString('base64url')}`
    const body = JSON.stringify({ token, agent_id: row.user_id, expires_in: 900 })
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': body.length })
    response.end(body)
  })
})
server.listen(0, '127.0.0.1', () => {
  console.log(`listening on ${(server.address() as AddressInfo).port}`)
})
