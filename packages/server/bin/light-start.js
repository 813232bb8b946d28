import { enableCompileCache } from 'node:module'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { setFlagsFromString } from 'node:v8'

// Loaded before the service, for what must be known before its first line runs: mostly for the start, 590 → 330 ms
// and 160 → 105 MB at rest (docs/performance.md).

// Compiled code is kept beside the dependencies that it was made from, and no TypeScript is stripped twice. Where
// nothing can be written, Node goes on without. The variable is for the writer's thread, which takes over nothing
// else.
const cache = fileURLToPath(new URL('../../../node_modules/.cache/keyway', import.meta.url))
process.env.NODE_COMPILE_CACHE ??= cache
enableCompileCache(process.env.NODE_COMPILE_CACHE)

// Nearly all that a start allocates stays, so room for what dies young would only be room that is never given
// back. cli/serve.ts lets it grow again once the service is ready.
setFlagsFromString('--semi-space-growth-factor=1')

// Where the process has one core, V8's marking threads have no other to run on: they take turns with the service, for
// some 20 ms at a time. The main thread marks in small steps instead, at the same throughput: the slowest of a
// thousand exchanges at half load takes 6 ms, not 23.
if (availableParallelism() === 1) setFlagsFromString('--no-concurrent-marking')
