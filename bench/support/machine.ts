import { type ChildProcess, type SpawnOptions, spawn, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { availableParallelism, cpus } from 'node:os'

/** What is measured runs here, alone. */
export const SERVER_CORE = 0
/** The load, the database server and the bench itself run here, so that they take nothing from what is measured. */
export const LOAD_CORE = availableParallelism() > 1 ? 1 : 0

const canPin = spawnSync('taskset', ['--version']).status === 0
/** Of `/proc/…/stat`: clock ticks a second. */
const TICKS = Number(spawnSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }).stdout) || 100

/** Puts this process and all that it starts from now on onto the load's core. */
export function pinBench(): void {
  if (canPin) spawnSync('taskset', ['-acp', String(LOAD_CORE), String(process.pid)])
}

/** A Node program on one core, whatever core this process is on. */
export function spawnPinned(core: number, args: readonly string[], options: SpawnOptions = {}): ChildProcess {
  const command = [process.execPath, ...args]
  const pinned = canPin ? ['taskset', '-c', String(core), ...command] : command
  return spawn(pinned[0]!, pinned.slice(1), options)
}

/** Seconds of processor time that a process used so far, all of its threads together. */
export function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS
}

/** Resident memory in bytes. */
export function residentBytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024
}

/** For the head of a result: figures of different machines are never compared. */
export function machineName(): string {
  const [cpu] = cpus()
  return `${availableParallelism()} × ${cpu?.model.trim() ?? 'unknown'}, Node ${process.version}, ${process.platform} ${process.arch}`
}
