import type { IncomingMessage } from 'node:http'
import { KeywayError } from '../../errors.ts'
import type { HookProvider } from '../../outbox/mail-hook.ts'
import { NO_CONTENT } from '../answer.ts'
import { JSON_BODY } from '../body.ts'
import type { HttpPorts } from '../http-ports.ts'
import { notFound } from '../not-found.ts'
import { type Route, route } from '../route.ts'

/** Maximum size of a bounce report, which may contain the whole mail. */
const MAX_REPORT_BYTES = 256 * 1024
const PROVIDERS: readonly HookProvider[] = ['resend', 'postmark']

export function hookRoutes({ mailHooks }: Pick<HttpPorts, 'mailHooks'>): Route[] {
  return [
    route({
      method: 'POST',
      path: '/hooks/mail/{provider}',
      operation: 'receiveMailHook',
      tag: 'Service',
      summary: 'Reports of bounces and complaints (resend, postmark)',
      description:
        'Called by the mail provider. Resend signs its calls (`svix-id`, `svix-timestamp`, `svix-signature`) with the secret in `KEYWAY_MAIL_HOOK_SECRET`; Postmark sends that secret as the password of HTTP Basic. A permanent bounce or a complaint stops mail to the address for 7 days. Without the setting the response is 404.',
      access: 'public',
      answers: [
        { status: 204, description: 'The report was applied, or is of a kind that needs no action.' },
      ],
      errors: [
        'not_found',
        'authentication_required',
        'invalid_json',
        'payload_too_large',
        'unsupported_media_type',
      ],
      raw: {
        format: { ...JSON_BODY, maxBytes: MAX_REPORT_BYTES },
        validateHead({ params, incoming }) {
          const provider = providerOf(params)
          if (!mailHooks || !provider) throw notFound()
          if (!mailHooks.mayBeFrom(provider, headersOf(incoming))) throw unauthenticatedReport()
        },
      },
      async handle({ params, incoming, bytes }) {
        const call = { header: headersOf(incoming), body: bytes! }
        const outcome = await mailHooks!.receive(providerOf(params)!, call)
        if (outcome === 'forged') throw unauthenticatedReport()
        if (outcome === 'unreadable')
          throw new KeywayError('invalid_json', 'The report is not a JSON object.')
        return NO_CONTENT
      },
    }),
  ]
}

function providerOf({ provider }: { provider: string }): HookProvider | undefined {
  return PROVIDERS.find(each => each === provider)
}

function headersOf(incoming: IncomingMessage): (name: string) => string | undefined {
  return name => {
    const values = incoming.headersDistinct[name]
    return values?.length === 1 ? values[0] : undefined
  }
}

function unauthenticatedReport(): KeywayError {
  return new KeywayError('authentication_required', 'The report is not authenticated by the mail provider.')
}
