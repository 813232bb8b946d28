import { packSdk } from '@keyway/sdk/pack'
import { z } from 'zod'
import { publicFor } from '../../cache-control.ts'
import { type Route, route } from '../route.ts'

export function sdkRoutes(): Route[] {
  let sdk: Promise<Buffer> | null = null

  return [
    route({
      method: 'GET',
      path: '/sdk.tgz',
      operation: 'getSdk',
      tag: 'Service',
      summary: 'The npm package @keyway/sdk that fits this version',
      description:
        'To install (`npm install <this address>`) or to run its demo agent (`npx -y <this address>`).',
      access: 'public',
      answers: [{ status: 200, description: 'The package.', schema: z.string(), type: 'application/gzip' }],
      errors: [],
      async handle() {
        sdk ??= packSdk()
        const headers = { 'Cache-Control': publicFor(60) }
        return { status: 200, body: new Uint8Array(await sdk), type: 'application/gzip', headers }
      },
    }),
  ]
}
