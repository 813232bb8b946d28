import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { parentPort, workerData } from 'node:worker_threads'

/*
 * A worker thread that connects `count` clients to `port`, says in `areConnected` when all are connected, sends `request`
 * on each, and posts their answers. The thread of the server can wait for the connections without accepting any.
 */

const { port, count, request, areConnected } = workerData as {
  port: number
  count: number
  request: string
  /** 0; 1 once all clients are connected. */
  areConnected: Int32Array<SharedArrayBuffer>
}

const clients = Array.from({ length: count }, () => connect(port, '127.0.0.1'))
await Promise.all(clients.map(client => once(client, 'connect')))
Atomics.store(areConnected, 0, 1)
Atomics.notify(areConnected, 0)
for (const client of clients) client.write(request)
parentPort!.postMessage(await Promise.all(clients.map(client => text(client))))
