/** Runs a tool of tools/install.ts, which is installed if it is missing: `node tools/run.ts biome check .` */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { requireTool, type Tool } from './install.ts'

const [name, ...args] = process.argv.slice(2)
const child = spawn(await requireTool(name as Tool), args, { stdio: 'inherit' })
const [status] = await once(child, 'exit')
process.exitCode = status ?? 1
