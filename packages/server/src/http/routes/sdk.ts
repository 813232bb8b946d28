import { packSdk } from '@keyway/sdk/pack'
import { z } from 'zod'
import { packWheel } from '../../../../python/pack.ts'
import { IMMUTABLE, publicFor } from '../../cache-control.ts'
import { KeywayError } from '../../errors.ts'
import { embeddedFiles } from '../../own-files.ts'
import { type Route, route } from '../route.ts'

/** `max-age` of the redirect to the current version, in seconds. */
const REDIRECT_SECONDS = 60

/** The client packages of this version. Each build has an immutable URL; a fixed URL redirects to it. */
export function sdkRoutes(publicUrl: string): Route[] {
  return [
    ...packageRoutes({
      latest: '/sdk.tgz',
      path: '/sdk-{version}.tgz',
      operation: 'Sdk',
      what: 'the npm package @keyway/sdk',
      usage:
        'Install it (`npm install <this URL>`), or run its command: `npx -y <this URL> login` gets a key for this machine, `npx -y <this URL>` connects with it.',
      type: 'application/gzip',
      pack: () => packSdk(publicUrl, embeddedFiles('sdk')),
    }),
    ...packageRoutes({
      latest: '/sdk.whl',
      path: '/keyway-{version}-py3-none-any.whl',
      operation: 'PythonSdk',
      what: 'the Python package keyway',
      usage:
        'pip takes the name of the package from its URL: install the one that this redirects to, `pip install $(curl -fsS -o /dev/null -w "%{redirect_url}" <this URL>)`.',
      type: 'application/zip',
      pack: () => packWheel(embeddedFiles('python')),
    }),
  ]
}

interface ServedPackage {
  /** The path that redirects to the current version. */
  latest: string
  path: `${string}{version}${string}`
  operation: string
  what: string
  usage: string
  type: string
  pack(): Promise<{ version: string; content: Uint8Array }>
}

function packageRoutes({ latest, path, operation, what, usage, type, pack }: ServedPackage): Route[] {
  let packagePromise: ReturnType<typeof pack> | null = null
  /**
   * Packs on the first request, so that packing does not delay the start, and returns the same package from then on.
   */
  const packOnce = () => {
    packagePromise ??= pack()
    return packagePromise
  }
  return [
    route({
      method: 'GET',
      path: latest,
      operation: `getLatest${operation}`,
      tag: 'Service',
      summary: `The address of ${what} that fits this version`,
      description: usage,
      access: 'public',
      answers: [{ status: 302, description: `\`Location\` has the address of ${what}.` }],
      errors: [],
      async handle() {
        const { version } = await packOnce()
        const headers = {
          Location: path.replace('{version}', version),
          'Cache-Control': publicFor(REDIRECT_SECONDS),
        }
        return { status: 302, headers }
      },
    }),
    route({
      method: 'GET',
      path,
      operation: `get${operation}`,
      tag: 'Service',
      summary: `One version of ${what}`,
      description: `The same bytes for ever. Only the version that fits this service is here; \`${latest}\` has its address.`,
      access: 'public',
      answers: [{ status: 200, description: 'The package.', schema: z.string(), type }],
      errors: ['not_found'],
      async handle({ params }) {
        const { version, content } = await packOnce()
        if (params.version !== version)
          throw new KeywayError('not_found', `This service has another version: ${latest} redirects to it.`)
        return { status: 200, body: content, type, headers: { 'Cache-Control': IMMUTABLE } }
      },
    }),
  ]
}
