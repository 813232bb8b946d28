import { spawn } from 'node:child_process'

/*
 * Runs a command in the process group of this program, and kills the group when standard input ends. So the command and
 * its children end with the process that holds the other end of the pipe, even if that one is killed.
 */

const [command, ...args] = process.argv.slice(2)
const child = spawn(command!, args, { stdio: ['ignore', 'inherit', 'inherit'] })
child.on('error', ({ message }) => {
  console.error(message)
  process.exit(127)
})
child.on('exit', status => process.exit(status ?? 1))
process.stdin.on('end', () => process.kill(-process.pid, 'SIGKILL')).resume()
