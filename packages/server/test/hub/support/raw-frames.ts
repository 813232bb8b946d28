import { connect, type Socket } from 'node:net'

/** A frame of RFC 6455 section 5.2, possibly invalid. */
export interface RawFrame {
  opcode: number
  payload: Buffer
  fin?: boolean
  /** Reserved bits, 0 to 7. */
  reserved?: number
  masked?: boolean
  /** The length in the header, if it differs from that of the payload. */
  claimedLength?: bigint
}

export const CONTINUATION = 0
export const TEXT = 1
export const BINARY = 2
export const CLOSE = 8
export const PING = 9
export const PONG = 10

/** Encodes a frame. The mask is zero, which is legal and leaves the payload unchanged. */
export function encodeFrame(frame: RawFrame): Buffer {
  const { opcode, payload, fin = true, reserved = 0, masked = true } = frame
  const length = frame.claimedLength ?? BigInt(payload.length)
  const head = [(fin ? 0x80 : 0) | (reserved << 4) | opcode]
  const mask = masked ? 0x80 : 0
  if (length < 126n) head.push(mask | Number(length))
  else if (length < 65_536n) head.push(mask | 126, Number(length >> 8n), Number(length & 255n))
  else
    head.push(
      mask | 127,
      ...Array.from({ length: 8 }, (_, n) => Number((length >> BigInt(56 - 8 * n)) & 255n)),
    )
  return Buffer.concat([Buffer.from(head), Buffer.alloc(masked ? 4 : 0), payload])
}

/** Opens a TCP connection and sends the upgrade request; the caller reads the response. */
export function dialHub(port: number, token: string): Socket {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  socket.write(
    `GET /hub HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nAuthorization: Bearer ${token}\r\n\r\n`,
  )
  return socket
}

/** The code of the close frame among the server's frames, which are unmasked; null if there is none. */
export function closeCodeIn(bytes: Buffer): number | null {
  let at = bytes.indexOf('\r\n\r\n') + 4
  while (at >= 4 && at + 2 <= bytes.length) {
    const shortLength = bytes[at + 1]!
    const headLength = shortLength === 127 ? 10 : shortLength === 126 ? 4 : 2
    if (at + headLength > bytes.length) return null
    const length =
      shortLength === 127
        ? Number(bytes.readBigUInt64BE(at + 2))
        : shortLength === 126
          ? bytes.readUInt16BE(at + 2)
          : shortLength
    if (bytes[at] === 0x88 && at + headLength + 2 <= bytes.length) return bytes.readUInt16BE(at + headLength)
    at += headLength + length
  }
  return null
}

/** The payload of a frame that a server sends. */
export function textOf(frame: Buffer): string {
  const length = frame[1]!
  return frame.toString('utf8', length < 126 ? 2 : length === 126 ? 4 : 10)
}
