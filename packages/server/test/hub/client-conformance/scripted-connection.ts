import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { Json } from '@keyway/sdk/protocol'
import type { WebSocket } from 'ws'
import { Queue } from '../../../../sdk/test/support/queue.ts'

type Fields = { [name: string]: Json }
export type Frame = Fields & { type: string }

/** The hub's end of one connection of the client under test. */
export class ScriptedConnection {
  readonly id: string
  readonly token: string
  /** What the client offers to resume; null if it offers nothing, or nothing valid. */
  readonly resume: { token: string; lastSeq: number } | null
  /** Frames of the client other than `ping`. */
  readonly frames = new Queue<Frame>()
  /** The code of the client's close frame, which may answer the hub's; 1005 if it has no code, 1006 if none came. */
  readonly closed: Promise<number>
  readonly arrivedAt = performance.now()
  #socket: WebSocket
  #isReady = false
  #isSilent = false
  #violated: (problem: string) => void

  constructor(
    socket: WebSocket,
    { headers }: IncomingMessage,
    id: string,
    violated: (problem: string) => void,
  ) {
    this.#socket = socket
    this.#violated = violated
    this.id = id
    const subprotocols = (headers['sec-websocket-protocol'] ?? '').split(',').map(text => text.trim())
    const tokenInHeader = /^Bearer (\S+)$/i.exec(headers.authorization ?? '')?.[1]
    const tokenInSubprotocol = subprotocols.find(text => text.startsWith('bearer.'))?.slice('bearer.'.length)
    if ((tokenInHeader === undefined) === (tokenInSubprotocol === undefined))
      violated('the token comes as header or as subprotocol, and not as both')
    if (tokenInSubprotocol !== undefined && !subprotocols.includes('keyway.hub.v1'))
      violated('subprotocols include keyway.hub.v1')
    this.token = tokenInHeader ?? tokenInSubprotocol ?? ''
    const resumeOffer =
      headers['keyway-resume'] ??
      subprotocols.find(text => text.startsWith('resume.'))?.slice('resume.'.length)
    const [, token, seq] = /^([\w-]+)\.(\d+)$/.exec(String(resumeOffer ?? '')) ?? []
    if (resumeOffer !== undefined && token === undefined) violated(`${resumeOffer} resumes nothing`)
    this.resume = token === undefined ? null : { token, lastSeq: Number(seq) }
    this.closed = once(socket, 'close').then(([code]) => Number(code))
    socket.on('message', data => this.#received(String(data)))
    socket.on('error', () => {})
  }

  get isOpen(): boolean {
    return this.#socket.readyState === this.#socket.OPEN
  }

  ready(fields: Fields = {}): void {
    this.#isReady = true
    this.send({
      type: 'ready',
      connection_id: this.id,
      agent_id: 'owner',
      key_id: 'key',
      key_name: null,
      scopes: [],
      expires_at: '2000-01-01T00:00:00.000Z', // wrong on purpose: lifetimes are measured by expires_in
      expires_in: 900,
      heartbeat_seconds: 25,
      resume_token: `resume-${this.id}`,
      resume_seconds: 120,
      resumed: false,
      ...fields,
    })
  }

  send(frame: Frame): void {
    this.#socket.send(JSON.stringify(frame))
  }

  message(id: string, data: Json, fields: Fields = {}): void {
    this.send({ type: 'message', id, from: 'peer', from_key_id: 'peer key', data, ...fields })
  }

  /** The next frame of this type; others are skipped. */
  async next(type: string, withinMs?: number): Promise<Frame> {
    for (;;) {
      const frame = await this.frames.next(withinMs)
      if (frame.type === type) return frame
    }
  }

  /**
   * Waits for the next `send`, which must echo `data`, and acknowledges it unless `acknowledges` is false.
   *
   * @param repeated a frame that the client sent on another connection. A client that has not read its acknowledgement
   * may send it again before the echo.
   */
  async echoes(
    data: Json,
    { acknowledges = true, repeated }: { acknowledges?: boolean; repeated?: Frame } = {},
  ): Promise<Frame> {
    const frame = await this.next('send')
    if (repeated && frame.id === repeated.id) {
      this.acknowledge(frame)
      return this.echoes(data, { acknowledges })
    }
    const echoedData = (frame.data as Fields | null)?.echo
    if (frame.to !== 'peer' || JSON.stringify(echoedData) !== JSON.stringify(data))
      throw new Error(`expected {"echo":${JSON.stringify(data)}} to peer, not ${JSON.stringify(frame)}`)
    if (acknowledges) this.acknowledge(frame)
    return frame
  }

  acknowledge({ id }: Frame): void {
    this.send({ type: 'sent', id: id!, delivered: 1, held: 0 })
  }

  /** Sends a message and waits for its echo, which shows that the client works on this connection. */
  async works(data: Json = 'still there?'): Promise<Frame> {
    this.message(`works-${performance.now()}`, data)
    return this.echoes(data)
  }

  close(code: number, reason: string): void {
    this.#socket.close(code, reason)
  }

  /** Ends the TCP connection without a close frame. */
  cut(): void {
    this.#socket.terminate()
  }

  /** Answers nothing from now on, like a half-open connection. */
  fallSilent(): void {
    this.#isSilent = true
    this.#socket.pause()
  }

  #received(text: string): void {
    if (this.#isSilent) return
    const frame = parseFrame(text)
    if (!frame) {
      this.#violated(`a frame is one JSON object with a type, not ${text}`)
      return
    }
    if (!this.#isReady && frame.type !== 'ping') this.#violated(`${frame.type} was sent before ready`)
    if (frame.type === 'ping') {
      this.send({ type: 'pong' })
      return
    }
    if (
      frame.type === 'send' &&
      !(typeof frame.id === 'string' && typeof frame.to === 'string' && 'data' in frame)
    )
      this.#violated(`a send has id, to and data, unlike ${text}`)
    this.frames.push(frame)
  }
}

function parseFrame(text: string): Frame | null {
  try {
    const frame = JSON.parse(text) as Frame | null
    return typeof frame?.type === 'string' ? frame : null
  } catch {
    return null
  }
}
