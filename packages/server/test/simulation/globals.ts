import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import timers from 'node:timers'
import timersPromises from 'node:timers/promises'
import type { Random } from '../support/random.ts'
import { currentProcess, type Scheduler, type SimulatedProcess } from './scheduler.ts'

/** The time of day at which every run begins. */
export const START_TIME = Date.UTC(2026, 10, 20, 12)

interface SimulatedRun {
  scheduler: Scheduler
  random: Random
}

let currentRun: SimulatedRun | null = null
const realGlobals = { setTimeout, Date, random: Math.random, now: performance.now.bind(performance) }

/** Makes time and randomness of this process follow a run; with null they are real again. */
export function followRun(run: SimulatedRun | null): void {
  currentRun = run
}

class SimulatedTimer {
  readonly #owner: SimulatedProcess
  readonly #ms: number
  readonly #repeats: boolean
  readonly #callback: () => void
  #cancel = () => {}

  constructor(callback: () => void, ms: number | undefined, repeats: boolean, name: string) {
    this.#owner = currentProcess()
    this.#ms = name === 'immediate' ? 0 : Math.max(1, ms || 0)
    this.#repeats = repeats
    this.#callback = callback
    this.#start(name)
  }

  #start(name: string): void {
    const { scheduler } = currentRun!
    this.#cancel = scheduler.after(this.#owner, this.#ms, name, () => {
      if (this.#repeats) this.#start(name)
      this.#callback()
    })
  }

  close(): void {
    this.#cancel()
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }

  hasRef(): boolean {
    return true
  }

  [Symbol.dispose](): void {
    this.#cancel()
  }
}

function timer(repeats: boolean, name: string) {
  return (callback: (...args: unknown[]) => void, ms?: number, ...args: unknown[]) =>
    new SimulatedTimer(() => callback(...args), ms, repeats, name)
}

function immediate(callback: (...args: unknown[]) => void, ...args: unknown[]) {
  return new SimulatedTimer(() => callback(...args), 0, false, 'immediate')
}

function clear(of: unknown): void {
  if (of instanceof SimulatedTimer) of.close()
}

function wait(ms?: number, value?: unknown, options: { signal?: AbortSignal } = {}): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const timer = new SimulatedTimer(() => resolve(value), ms, false, 'wait')
    options.signal?.addEventListener('abort', () => {
      timer.close()
      reject(options.signal?.reason)
    })
  })
}

class SimulatedDate extends Date {
  constructor(...args: unknown[]) {
    if (args.length === 0) super(systemTime())
    else super(...(args as []))
  }

  static override now(): number {
    return systemTime()
  }
}

function systemTime(): number {
  if (!currentRun) return realGlobals.Date.now()
  return Math.floor(START_TIME + currentRun.scheduler.now + currentProcess().systemOffset)
}

function monotonicTime(): number {
  return currentRun ? currentRun.scheduler.now : realGlobals.now()
}

/** Calls `draw`, which takes bytes from a pool, until this run has refilled that pool. */
export function refill(draw: () => void): void {
  for (const before = fillCount; fillCount === before; ) draw()
}

let fillCount = 0

function fill<Bytes extends NodeJS.ArrayBufferView>(into: Bytes, offset = 0, size?: number): Bytes {
  const bytes = new Uint8Array(into.buffer, into.byteOffset + offset, size ?? into.byteLength - offset)
  const { random } = currentRun!
  fillCount++
  for (let at = 0; at < bytes.length; at++) bytes[at] = random.between(0, 255)
  return into
}

function randomInt(low: number, high?: number): number {
  const [from, to] = high === undefined ? [0, low] : [low, high]
  return currentRun!.random.between(from, to - 1)
}

/** Returns a version 4 UUID made of the run's random bytes. */
function randomUuid(): string {
  const hex = fill(Buffer.alloc(16)).toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`
}

/**
 * Replaces the sources of time and randomness for the rest of this process. Call it before the service's modules are
 * loaded.
 */
export function installGlobals(): void {
  const simulatedFunctions = {
    setTimeout: timer(false, 'timeout'),
    setInterval: timer(true, 'interval'),
    setImmediate: immediate,
    clearTimeout: clear,
    clearInterval: clear,
    clearImmediate: clear,
  }
  for (const [name, simulated] of Object.entries(simulatedFunctions)) {
    const original = (globalThis as unknown as Record<string, (...args: unknown[]) => unknown>)[name]!
    const realOrSimulated = (...args: unknown[]) =>
      currentRun ? (simulated as (...args: unknown[]) => unknown)(...args) : original(...args)
    Object.assign(globalThis, { [name]: realOrSimulated })
    Object.assign(timers, { [name]: realOrSimulated })
  }
  replace(timersPromises, 'setTimeout', wait)
  replace(timersPromises, 'setImmediate', (value?: unknown) => wait(0, value))
  Object.assign(globalThis, { Date: SimulatedDate })
  Math.random = () => (currentRun ? currentRun.random.next() : realGlobals.random())
  performance.now = monotonicTime
  replace(crypto, 'randomBytes', (size: number) => fill(Buffer.alloc(size)))
  replace(crypto, 'randomFillSync', fill)
  replace(crypto, 'randomInt', randomInt)
  replace(crypto, 'randomUUID', randomUuid)
  replace(globalThis.crypto, 'getRandomValues', fill)
  replace(globalThis.crypto, 'randomUUID', randomUuid)
  syncBuiltinESMExports()
}

/** Replaces a function by one that calls `simulated` during a run, and the original otherwise. */
function replace(on: object, name: string, simulated: unknown): void {
  const original = Reflect.get(on, name) as (...args: unknown[]) => unknown
  const realOrSimulated = (...args: unknown[]) =>
    currentRun ? (simulated as (...args: unknown[]) => unknown)(...args) : original.apply(on, args)
  Object.defineProperty(on, name, {
    value: realOrSimulated,
    configurable: true,
    writable: true,
    enumerable: true,
  })
}
