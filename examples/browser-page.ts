import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import { Keyway } from '@keyway/sdk'

// The key stays on this backend; the page requests a 15-minute token. A real backend would authenticate the user first.
const keyway = new Keyway()
const api_key = process.env.KEYWAY_API_KEY ?? ''
const port = Number(process.env.PORT ?? 3000)
const sdkFolder = fileURLToPath(new URL('../packages/sdk/dist/', import.meta.url))

const page = `<!doctype html>
<meta charset="utf-8">
<title>An agent in a page</title>
<h1>An agent in a page</h1>
<p id="state" role="status">connecting</p>
<ul id="messages"></ul>
<script type="module">
  import { Agent } from '/sdk/index.js'
  const say = text => { document.querySelector('#state').textContent = text }
  const agent = new Agent({
    url: ${JSON.stringify(process.env.KEYWAY_URL)},
    getToken: async signal => (await fetch('/token', { method: 'POST', signal })).json(),
  })
  agent.on('ready', ({ connectionId }) => say('connected as ' + connectionId))
  agent.on('disconnected', ({ reason }) => say('disconnected: ' + reason))
  agent.on('stopped', ({ error }) => say(error ? error.message : 'closed'))
  agent.on('message', ({ data }) => {
    const line = document.createElement('li')
    line.textContent = JSON.stringify(data)
    document.querySelector('#messages').append(line)
  })
</script>`

const server = createServer(async (request, response) => {
  const { method, url = '/' } = request
  const module = /^\/sdk\/((?:calls\/)?[a-z0-9-]+\.js)$/.exec(url)?.[1]
  try {
    if (method === 'POST' && url === '/token') {
      const answer = await keyway.exchange({ api_key })
      response.setHeader('content-type', 'application/json').end(JSON.stringify(answer))
    } else if (module) {
      response.setHeader('content-type', 'text/javascript').end(await readFile(sdkFolder + module))
    } else {
      response.setHeader('content-type', 'text/html').end(page)
    }
  } catch (error) {
    console.error(String(error))
    response.writeHead(502).end()
  }
})

server.listen(port, '127.0.0.1', () => console.log(`Open http://localhost:${port}`))
