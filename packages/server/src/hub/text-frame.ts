/** Payloads of at least so many bytes have their length in two bytes, or in eight. */
const TWO_BYTES = 126
const EIGHT_BYTES = 65_536
/** FIN, and the opcode of text. */
const FINAL_TEXT = 0x81

/**
 * A text frame as servers send it (RFC 6455 section 5.2: final and without a mask), whose payload is still to be written
 * into its last `length` bytes. In one buffer, since two writes for header and payload cost a sixth of a message to many.
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
