import { spawn } from 'node:child_process'

/*
 * Runs a command, in the process group of this program, until its standard input ends: so the command and what it starts end
 * with whoever holds the other end, however that ends.
 */

const [command, ...words] = process.argv.slice(2)
const child = spawn(command!, words, { stdio: ['ignore', 'inherit', 'inherit'] })
child.on('error', ({ message }) => {
  console.error(message)
  process.exit(127)
})
child.on('exit', status => process.exit(status ?? 1))
process.stdin.on('end', () => process.kill(-process.pid, 'SIGKILL')).resume()
