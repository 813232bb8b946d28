/** From these sizes on the header has two or eight more bytes for the length of the payload. */
const TWO_BYTES = 126
const EIGHT_BYTES = 65_536
/** FIN, and the opcode of text. */
const FINAL_TEXT = 0x81

/**
 * A final, unmasked text frame (RFC 6455 section 5.2), whose payload the caller writes into its last `length` bytes.
 * One buffer, since separate writes for header and payload would add a sixth to the cost of a message to many
 * connections.
 */
export function newTextFrame(length: number): Buffer {
  const header = length < TWO_BYTES ? 2 : length < EIGHT_BYTES ? 4 : 10
  const frame = Buffer.allocUnsafe(header + length)
  frame[0] = FINAL_TEXT
  if (header === 2) frame[1] = length
  else if (header === 4) {
    frame[1] = TWO_BYTES
    frame.writeUInt16BE(length, 2)
  } else {
    frame[1] = TWO_BYTES + 1
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
