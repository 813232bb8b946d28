import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PROGRAM, SOURCE_MARK } from './recording.ts'
import { isHandedOut } from './secret-allowances.ts'

/*
 * Searches the recorded output of a test run (recording.ts) for every secret that its processes created.
 *
 * A long secret is found in any context: the last 20 characters of each of its encodings (plain, URL-encoded, base64 at
 * each of the three offsets, as in `Basic user:secret`) are searched by a rolling hash, so the time grows with the
 * output, not with the number of secrets. Secrets under 12 characters are words in test settings, and are skipped.
 *
 * A login code has eight digits, like some other numbers. It is reported only if exactly its digits (also as `1234
 * 5678`) occur separately, not within a longer word, identifier or decimal fraction, in later output of the process
 * that created it. A coincidence is expected in at most one of a thousand runs: a process prints some tens of such
 * numbers, nearly all as metrics (secret-allowances.ts), and creates some hundred codes.
 */

export interface Leak {
  kind: string
  /** The stream and the program, such as `stdout of keyway inbox`. */
  place: string
  file: string
  line: number
}

export interface ScanResult {
  secrets: number
  processes: number
  bytes: number
  leaks: Leak[]
}

interface Secret {
  kind: string
  value: string
  /** Length of the process's output when the secret was created. */
  offset: number
}

const TAIL_LENGTH = 20
const MIN_LENGTH = 12
const LOGIN_CODE = /^\d{8}$/

export function scanRecording(folder: string): ScanResult {
  const names = readdirSync(folder)
  const outputs = names.filter(name => name.endsWith('.output')).map(name => name.slice(0, -'.output'.length))
  const secrets = new Map(outputs.map(name => [name, readSecrets(join(folder, `${name}.secrets`))]))
  const kinds = new Map<string, string>()
  // The last kind is the most precise: a random token is registered again as a link's token when the link is created.
  for (const { kind, value } of [...secrets.values()].flat()) kinds.set(value, kind)
  const search = createSearch(kinds)

  const leaks: Leak[] = []
  let bytes = 0
  for (const name of outputs) {
    const file = join(folder, `${name}.output`)
    const output = readFileSync(file)
    bytes += output.length
    const codes = secrets.get(name)!.filter(({ value }) => LOGIN_CODE.test(value))
    const matches = [...search(output), ...findCodes(output, codes)]
    if (matches.length > 0) leaks.push(...leaksAmong(matches, output.toString('latin1'), file))
  }
  const processes = new Set(outputs.map(name => name.split('.')[0])).size
  return { secrets: kinds.size, processes, bytes, leaks }
}

function readSecrets(file: string): Secret[] {
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1)
  return lines.map(line => {
    const [kind = '', offset, value = '""'] = line.split('\t')
    return { kind, offset: Number(offset), value: JSON.parse(value) }
  })
}

interface Match {
  kind: string
  /** Position of its last character. */
  at: number
}

const HASH_BASE = 0x01000193
const FILTER_BITS = 24

/** Rabin-Karp search for many texts: hashes the last `MIN_LENGTH` bytes, then compares the last `TAIL_LENGTH`. */
function createSearch(kinds: ReadonlyMap<string, string>): (text: Buffer) => Match[] {
  const kindOf = new Map<string, string>()
  for (const [value, kind] of kinds)
    if (value.length >= MIN_LENGTH)
      for (const text of encodings(value)) kindOf.set(text.slice(-TAIL_LENGTH), kind)
  const tailsByHash = new Map<number, { tail: Buffer; kind: string }[]>()
  const filter = new Uint8Array(1 << (FILTER_BITS - 3))
  for (const [text, kind] of kindOf) {
    const tail = Buffer.from(text)
    const hash = hashOf(tail.subarray(-MIN_LENGTH))
    tailsByHash.set(hash, [...(tailsByHash.get(hash) ?? []), { tail, kind }])
    const bitIndex = hash >>> (32 - FILTER_BITS)
    filter[bitIndex >> 3]! |= 1 << (bitIndex & 7)
  }
  let leavingFactor = 1
  for (let power = 0; power < MIN_LENGTH; power++) leavingFactor = Math.imul(leavingFactor, HASH_BASE)

  return text => {
    const matches: Match[] = []
    let hash = 0
    for (let at = 0; at < text.length; at++) {
      hash = (Math.imul(hash, HASH_BASE) + text[at]!) | 0
      if (at >= MIN_LENGTH) hash = (hash - Math.imul(text[at - MIN_LENGTH]!, leavingFactor)) | 0
      const bitIndex = hash >>> (32 - FILTER_BITS)
      if ((filter[bitIndex >> 3]! & (1 << (bitIndex & 7))) === 0) continue
      const hit = tailsByHash.get(hash)?.find(({ tail }) => endsWith(text, at + 1, tail))
      if (hit) matches.push({ kind: hit.kind, at })
    }
    return matches
  }
}

function hashOf(bytes: Buffer): number {
  return bytes.reduce((hash, byte) => (Math.imul(hash, HASH_BASE) + byte) | 0, 0)
}

function endsWith(text: Buffer, end: number, tail: Buffer): boolean {
  return end >= tail.length && text.compare(tail, 0, tail.length, end - tail.length, end) === 0
}

function encodings(value: string): Set<string> {
  return new Set([value, encodeURIComponent(value), ...inBase64(value.slice(-2 * TAIL_LENGTH))])
}

/** The part of a text's base64 that does not depend on its surroundings, for each of the three offsets. */
function inBase64(text: string): string[] {
  return [0, 1, 2].flatMap(before => {
    const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(text)])
    const wholeGroups = bytes.subarray(0, bytes.length - (bytes.length % 3)).subarray(before === 0 ? 0 : 3)
    return wholeGroups.length * 4 < MIN_LENGTH * 3
      ? []
      : [wholeGroups.toString('base64'), wholeGroups.toString('base64url')]
  })
}

const EIGHT_DIGITS = /(?<!\w|\w[.-])(\d{4}) ?(\d{4})(?!\w|[.-]\w)/g

function findCodes(output: Buffer, codes: readonly Secret[]): Match[] {
  if (codes.length === 0) return []
  const offsets = new Map(codes.map(({ value, offset }) => [value, offset]))
  const text = output.toString('latin1')
  return [...text.matchAll(EIGHT_DIGITS)]
    .filter(({ 1: first, 2: second, index }) => {
      const madeAt = offsets.get(`${first}${second}`)
      return madeAt !== undefined && index >= madeAt
    })
    .map(({ 0: digits, index }) => ({ kind: 'login code', at: index + digits.length - 1 }))
}

function lineUpTo(text: string, at: number): string {
  return text.slice(text.lastIndexOf('\n', at - 1) + 1, at)
}

function leaksAmong(matches: readonly Match[], text: string, file: string): Leak[] {
  const program = text.slice(PROGRAM.length, text.indexOf('\n'))
  return matches.flatMap(({ kind, at }) => {
    const markAt = text.lastIndexOf(SOURCE_MARK, at)
    const source = text.slice(markAt + 1, text.indexOf('\n', markAt))
    const place = `${source} of ${program}`
    if (isHandedOut({ kind, place, before: lineUpTo(text, at + 1) })) return []
    return [{ kind, place, file, line: text.slice(0, at).split('\n').length }]
  })
}
