import type { IncomingMessage } from 'node:http'
import { KeywayError } from '../../errors.ts'
import type { HookProvider } from '../../outbox/mail-hook.ts'
import { NO_CONTENT } from '../answer.ts'
import { JSON_BODY } from '../body.ts'
import type { HttpPorts } from '../http-ports.ts'
import { notFound } from '../not-found.ts'
import { type Route, route } from '../route.ts'

/** A provider may quote a whole mail in its report. */
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
        'For the mail provider alone. Resend signs its calls (`svix-id`, `svix-timestamp`, `svix-signature`) with the secret in `KEYWAY_MAIL_HOOK_SECRET`; Postmark sends that secret as the password of HTTP Basic. A lasting bounce or a complaint stops mail to the address for 7 days. Without the setting there is nothing here.',
      access: 'public',
      answers: [{ status: 204, description: 'Understood, or of no concern.' }],
      errors: [
        'not_found',
        'authentication_required',
        'invalid_json',
        'payload_too_large',
        'unsupported_media_type',
      ],
      raw: {
        format: { ...JSON_BODY, maxBytes: MAX_REPORT_BYTES },
        admit({ params, incoming }) {
          const provider = providerOf(params)
          if (!mailHooks || !provider) throw notFound()
          if (!mailHooks.mayBeFrom(provider, headersOf(incoming))) throw forged()
        },
      },
      async handle({ params, incoming, bytes }) {
        const call = { header: headersOf(incoming), body: bytes! }
        const outcome = await mailHooks!.receive(providerOf(params)!, call)
        if (outcome === 'forged') throw forged()
        if (outcome === 'unreadable') throw new KeywayError('invalid_json', 'The report is no JSON object.')
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

function forged(): KeywayError {
  return new KeywayError('authentication_required', 'Nothing shows that the mail provider sent this.')
}
