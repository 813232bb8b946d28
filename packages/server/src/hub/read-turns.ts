import type { Duplex } from 'node:stream'

/** What Node reads from a socket at once. */
const READ_BYTES = 65_536

/**
 * A listener for `data`: lets a socket that has more to read continue in the next turn of the event loop. Without it Node reads
 * a socket up to 32 times before others have their turn: 2 MB, which 50 agents with large frames multiply.
 */
export function yieldAfterFullRead(this: Duplex, chunk: Buffer): void {
  if (chunk.length < READ_BYTES) return
  this.pause()
  setImmediate(resume, this)
}

function resume(socket: Duplex): void {
  socket.resume()
}
