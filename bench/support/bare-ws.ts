import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { WebSocketServer } from 'ws'

/**
 * The floor (unavoidable work) of the hub: a plain `ws` server without authentication. It sends `ready`, forwards each
 * frame `send` to all clients, closes all clients upon a frame `close`, and answers other frames with `token_accepted`.
 */

const http = createServer()
const server = new WebSocketServer({ server: http, perMessageDeflate: false })
server.on('connection', socket => {
  socket.send('{"type":"ready"}')
  socket.on('message', data => {
    const text = data.toString()
    if (text.includes('"send"')) for (const other of server.clients) other.send(text)
    else if (text.includes('"close"')) for (const other of server.clients) other.close(4410, 'revoked')
    else socket.send('{"type":"token_accepted"}')
  })
})
http.listen(0, '127.0.0.1', () => {
  console.log(`listening on ${(http.address() as AddressInfo).port}`)
})
