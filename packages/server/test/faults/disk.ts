import { spawnSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { call } from '../support/nodes.ts'
import { type ScenarioResult, withWorld } from './world.ts'

const DISK_SIZE = '32m'

/** Mounts a disk of 32 MB; null if the machine does not allow it. */
export function mountSmallDisk(): { path: string; unmount(): void } | null {
  const path = mkdtempSync(join(tmpdir(), 'keyway-disk-'))
  const mountResult = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_SIZE}`, 'tmpfs', path])
  if (mountResult.status !== 0) {
    rmSync(path, { recursive: true, force: true })
    return null
  }
  return {
    path,
    unmount() {
      spawnSync('umount', ['-l', path])
      rmSync(path, { recursive: true, force: true })
    },
  }
}

/** While the disk is full, writes are refused and reads succeed; once there is space, writes succeed again. */
export async function diskFull(seed: number, scale: number): Promise<ScenarioResult> {
  const disk = mountSmallDisk()
  if (!disk)
    return { faults: 0, operations: 0, violations: [], notes: ['skipped: no disk can be mounted here'] }
  try {
    return await withWorld(seed, { engine: 'sqlite', dataDir: disk.path }, world =>
      world.underLoad(async () => {
        const filler = join(disk.path, 'filler')
        for (let round = 0; round < Math.max(1, 3 * scale); round++) {
          await wait(1500)
          fill(filler)
          world.faults++
          await wait(3000)
          const answer = await call(world.origins[0]!, 'GET', '/readyz')
          if (answer.status !== 200)
            world.history.violations.push(`a full disk stops reads (${answer.status})`)
          rmSync(filler)
          await wait(1000)
        }
      }),
    )
  } finally {
    disk.unmount()
  }
}

/** Writes to a file until its disk is full. */
export function fill(file: string): void {
  const handle = openSync(file, 'w')
  let size = 1 << 20
  while (size >= 512) {
    try {
      if (writeSync(handle, Buffer.alloc(size)) < size) size >>= 1
    } catch {
      size >>= 1
    }
  }
  closeSync(handle)
}
