import { type ChildProcess, type SpawnOptions, spawn, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { availableParallelism, cpus } from 'node:os'

/** Read before `pinBench`, which restricts this process to one core. */
const CORE_COUNT = availableParallelism()

/** The core of the measured process, which runs alone on it if the machine has more than one. */
export const SERVER_CORE = 0
/** The core of the load generator, the database server and the benchmark itself. */
export const LOAD_CORE = CORE_COUNT > 1 ? 1 : 0

const canPin = spawnSync('taskset', ['--version']).status === 0
/** Clock ticks a second, the unit of `/proc/…/stat`. */
const TICKS_PER_SECOND = Number(spawnSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }).stdout) || 100

/** Pins this process and its later children to the load generator's core, if `taskset` is installed. */
export function pinBench(): void {
  if (canPin) spawnSync('taskset', ['-acp', String(LOAD_CORE), String(process.pid)])
}

/** Starts `program`, by default Node, on one core or on several; on any core if `taskset` is missing. */
export function spawnPinned(
  core: number | readonly number[],
  args: readonly string[],
  options: SpawnOptions = {},
  program = process.execPath,
): ChildProcess {
  const command = [program, ...args]
  const pinnedCommand = canPin ? ['taskset', '-c', String(core), ...command] : command
  return spawn(pinnedCommand[0]!, pinnedCommand.slice(1), options)
}

/** Processor time in seconds that a process has used, over all threads. */
export function cpuSeconds(pid: number): number {
  return cpuSecondsOf(`/proc/${pid}/stat`)
}

/** Processor time in seconds that the main thread of a process has used, which runs the event loop. */
export function mainThreadCpuSeconds(pid: number): number {
  return cpuSecondsOf(`/proc/${pid}/task/${pid}/stat`)
}

function cpuSecondsOf(statFile: string): number {
  const stat = readFileSync(statFile, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
}

export function childrenOf(pid: number): number[] {
  const pids = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
  return pids === '' ? [] : pids.split(' ').map(Number)
}

export function residentBytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024
}

/** The machine, for the header of results: results of different machines are not comparable. */
export function machineName(): string {
  const [cpu] = cpus()
  return `${CORE_COUNT} × ${cpu?.model.trim() ?? 'unknown'}, Node ${process.version}, ${process.platform} ${process.arch}`
}
