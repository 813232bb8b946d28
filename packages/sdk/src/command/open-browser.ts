import { spawn } from 'node:child_process'
import process from 'node:process'

/**
 * Tries to open a page with `$BROWSER` or else the program of the platform, never through a shell. Errors are ignored,
 * since the address is printed anyway.
 */
export function openBrowser(url: string, env: NodeJS.ProcessEnv = process.env): void {
  const command = browserCommand(env)
  if (!command) return
  const [program, ...args] = command
  const child = spawn(program!, [...args, url], { stdio: 'ignore', detached: true })
  child.on('error', () => {})
  child.unref()
}

function browserCommand(env: NodeJS.ProcessEnv): string[] | null {
  if (env.BROWSER) return [env.BROWSER]
  // Over SSH the browser would open on the remote machine.
  if (env.SSH_CONNECTION) return null
  if (process.platform === 'darwin') return ['open']
  if (process.platform === 'win32') return ['rundll32', 'url.dll,FileProtocolHandler']
  return env.DISPLAY || env.WAYLAND_DISPLAY ? ['xdg-open'] : null
}
