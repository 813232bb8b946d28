import { packSdk } from '@keyway/sdk/pack'
import { z } from 'zod'
import { publicFor } from '../../cache-control.ts'
import { type Route, route } from '../route.ts'

export function sdkRoutes(publicUrl: string): Route[] {
  let sdk: Promise<Uint8Array> | null = null

  return [
    route({
      method: 'GET',
      path: '/sdk.tgz',
      operation: 'getSdk',
      tag: 'Service',
      summary: 'The npm package @keyway/sdk that fits this version',
      description:
        'Install it (`npm install <this URL>`), or run its command: `npx -y <this URL> login` gets a key for this machine, `npx -y <this URL>` connects with it.',
      access: 'public',
      answers: [{ status: 200, description: 'The package.', schema: z.string(), type: 'application/gzip' }],
      errors: [],
      async handle() {
        sdk ??= packSdk(publicUrl).then(bytes => new Uint8Array(bytes))
        const headers = { 'Cache-Control': publicFor(60) }
        return { status: 200, body: await sdk, type: 'application/gzip', headers }
      },
    }),
  ]
}
