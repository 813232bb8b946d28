/** The header of a payload of at least this many bytes has two or eight more bytes, which contain the length. */
const MIN_TWO_BYTE_LENGTH = 126
const MIN_EIGHT_BYTE_LENGTH = 65_536
/** The second byte of a header in which the length follows in two or eight bytes. */
const TWO_BYTE_MARKER = 126
const EIGHT_BYTE_MARKER = 127
/** The first byte of the header: FIN, and the opcode of text. */
const FINAL_TEXT = 0x81

/**
 * A final, unmasked text frame (RFC 6455 section 5.2), whose payload the caller writes into its last `length` bytes.
 * One buffer, since separate writes for header and payload would add a sixth to the cost of a message to many
 * connections.
 */
export function newTextFrame(length: number): Buffer {
  const header = length < MIN_TWO_BYTE_LENGTH ? 2 : length < MIN_EIGHT_BYTE_LENGTH ? 4 : 10
  const frame = Buffer.allocUnsafe(header + length)
  frame[0] = FINAL_TEXT
  if (header === 2) frame[1] = length
  else if (header === 4) {
    frame[1] = TWO_BYTE_MARKER
    frame.writeUInt16BE(length, 2)
  } else {
    frame[1] = EIGHT_BYTE_MARKER
    frame.writeUInt32BE(Math.floor(length / 2 ** 32), 2)
    frame.writeUInt32BE(length % 2 ** 32, 6)
  }
  return frame
}

export function textFrame(text: string): Buffer {
  const length = Buffer.byteLength(text)
  const frame = newTextFrame(length)
  frame.write(text, frame.length - length)
  return frame
}
