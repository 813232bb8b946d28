import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { skipWithout } from './missing-servers.ts'
import { until } from './patience.ts'
import { startProgram } from './programs.ts'

const NGINX = '/usr/sbin/nginx'

/** The value of `skip` for tests of nginx. */
export const nginxMissing = () => skipWithout(existsSync(NGINX), 'nginx is not installed here')

/** Runs nginx until the test ends, with `nginx.conf` and any files that it refers to; resolves when `url` answers. */
export async function runNginx(t: TestContext, files: Record<string, string>, url: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'keyway-nginx-'))
  // nginx's workers run as another user and need the folder too.
  chmodSync(folder, 0o777)
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  const args = ['-p', folder, '-c', 'nginx.conf', '-g', 'error_log stderr notice;'] as const
  await startProgram(t, [NGINX, ...args], {}, /start worker process/)
  await until('nginx listens', () =>
    fetch(url, { redirect: 'manual' }).then(
      () => true,
      () => false,
    ),
  )
}
