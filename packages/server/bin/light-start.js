import { enableCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'
import { setFlagsFromString } from 'node:v8'

// Loaded before the service, and only for what it does to the start: 590 → 330 ms and 160 → 105 MB at rest
// (docs/performance.md).

// Compiled code is kept beside the dependencies that it was made from, and no TypeScript is stripped twice. Where
// nothing can be written, Node goes on without. The variable is for the writer's thread, which takes over nothing
// else.
const cache = fileURLToPath(new URL('../../../node_modules/.cache/keyway', import.meta.url))
process.env.NODE_COMPILE_CACHE ??= cache
enableCompileCache(process.env.NODE_COMPILE_CACHE)

// Nearly all that a start allocates stays, so room for what dies young would only be room that is never given
// back. cli/serve.ts lets it grow again once the service is ready.
setFlagsFromString('--semi-space-growth-factor=1')
