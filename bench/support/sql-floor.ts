import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import pg from 'pg'
import { linkTokenHashOf } from './people.ts'
import { createReplayer, type RecordedStatement } from './recording.ts'

/**
 * The floor (unavoidable work) of a sign-in call: node:http, one JSON.parse, the same statements that the service
 * sends, in sequence on one connection of a plain pool, one signature, an answer of the same size. No limits,
 * validation, sealing, query builder or events.
 */

const require = createRequire(new URL('../../packages/server/package.json', import.meta.url))
const sodium = require('sodium-native')

interface Plan {
  url: string
  number: number
  statements: RecordedStatement[]
  answerBytes: number
}

const plan = JSON.parse(readFileSync(process.argv[2]!, 'utf8')) as Plan
const replay = createReplayer(plan.statements, plan.number, linkTokenHashOf)
const pool = new pg.Pool({ connectionString: plan.url, max: 20 })
const publicKey = Buffer.alloc(32)
const secretKey = Buffer.alloc(64)
sodium.crypto_sign_keypair(publicKey, secretKey)
const message = Buffer.alloc(400)

const server = createServer((request, response) => {
  let text = ''
  request.setEncoding('utf8')
  request.on('data', chunk => {
    text += chunk
  })
  request.on('end', () => {
    answer(JSON.parse(text)).then(
      body =>
        response
          .writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': body.length })
          .end(body),
      error => response.writeHead(500).end(String(error)),
    )
  })
})

async function answer({ n }: { n: number }): Promise<string> {
  const client = await pool.connect()
  try {
    for (const { text, values } of replay(n)) await client.query(text, values)
  } finally {
    client.release()
  }
  const signature = Buffer.alloc(64)
  sodium.crypto_sign_detached(signature, message, secretKey)
  return JSON.stringify({ token: signature.toString('base64url').padEnd(plan.answerBytes, 'x') })
}

server.listen(0, '127.0.0.1', () => {
  console.log(`listening on ${(server.address() as AddressInfo).port}`)
})
