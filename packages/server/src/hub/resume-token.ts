import { parseId } from '../ids.ts'
import { randomToken, sha256 } from '../secrets.ts'

const ID_BYTES = 16
const SECRET_BYTES = 24
/**
 * The token is `base64url(node id, connection id)` followed by the secret, and contains no dot. After it come a dot and
 * the sequence number of the last message that the agent received.
 */
const RESUME_PATTERN = /^([A-Za-z0-9_-]{43})([A-Za-z0-9_-]{32})\.([0-9]{1,16})$/
/** How long a broken connection can be resumed; sent in `ready`. */
export const RESUME_SECONDS = 120

/** The resumption that an agent asks for in its handshake. */
export interface ResumeRequest {
  /** The node that issued the token. */
  nodeId: string
  connectionId: string
  secretHash: string
  /** The sequence number of the last message that the agent received. */
  lastSeq: number
}

/** A buffer that is reused for every token, since each `ready` contains one. */
const scratch = Buffer.alloc(2 * ID_BYTES)

/** Creates a token that resumes a connection once, and the hash of its secret. */
export function newResumeToken(nodeId: string, connectionId: string): { token: string; secretHash: string } {
  const secret = randomToken(SECRET_BYTES)
  scratch.write(nodeId.replaceAll('-', ''), 0, 'hex')
  scratch.write(connectionId.replaceAll('-', ''), ID_BYTES, 'hex')
  return { token: scratch.toString('base64url') + secret, secretHash: sha256(secret) }
}

/** Parses `<resume_token>.<last seq>`; null if it is malformed. */
export function parseResume(text: string): ResumeRequest | null {
  const [, ids, secret, seq] = RESUME_PATTERN.exec(text) ?? []
  const lastSeq = Number(seq)
  if (!ids || !secret || !Number.isSafeInteger(lastSeq)) return null
  const bytes = Buffer.from(ids, 'base64url')
  const nodeId = idOf(bytes.subarray(0, ID_BYTES))
  const connectionId = idOf(bytes.subarray(ID_BYTES))
  return nodeId && connectionId ? { nodeId, connectionId, secretHash: sha256(secret), lastSeq } : null
}

function idOf(bytes: Buffer): string | null {
  const hex = bytes.toString('hex')
  return parseId(hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5'))
}
