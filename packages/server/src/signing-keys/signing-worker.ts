import { parentPort } from 'node:worker_threads'
import { type SecretKey, SIGNATURE_BYTES, sign } from './ed25519.ts'

/** A request to the signing thread, which answers with all signatures, one after the other in one array. */
export interface SigningRequest {
  secretKey: SecretKey
  signingInputs: string[]
}

// Diagnostic reports must not contain the environment, which has every secret setting. Each thread has its own option.
process.report.excludeEnv = true

const port = parentPort!
port.on('message', ({ secretKey, signingInputs }: SigningRequest) => {
  const signatures = new Uint8Array(signingInputs.length * SIGNATURE_BYTES)
  for (const [index, input] of signingInputs.entries())
    signatures.set(sign(Buffer.from(input), secretKey), index * SIGNATURE_BYTES)
  port.postMessage(signatures)
})
port.postMessage('ready')
