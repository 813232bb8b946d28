import { ERROR_CODES, type ErrorCode } from '@keyway/sdk/protocol'
import { z } from 'zod'
import { PROBLEMS } from '../../problems.ts'
import { wantsPage } from '../accept.ts'
import { ok } from '../answer.ts'
import { notFound } from '../not-found.ts'
import { type Route, route } from '../route.ts'

const explanation = z.strictObject({
  code: z.enum(ERROR_CODES),
  status: z.int(),
  title: z.string(),
  help: z.string(),
})

/** The documentation of error codes, to which the `type` of every problem document refers. */
export function errorRoutes(): Route[] {
  return [
    route({
      method: 'GET',
      path: '/errors/{code}',
      operation: 'explainError',
      tag: 'Service',
      summary: 'What an error code means and what to do',
      description: 'The `type` of every problem document is such a URL. Browsers get a page.',
      access: 'public',
      answers: [
        {
          status: 200,
          description: 'The explanation.',
          schema: explanation,
          example: explain('rate_limited'),
        },
      ],
      errors: [],
      leftToPages: wantsPage,
      handle({ params }) {
        const code = params.code as ErrorCode
        if (!Object.hasOwn(PROBLEMS, code)) throw notFound()
        return ok(explain(code))
      },
    }),
  ]
}

function explain(code: ErrorCode) {
  const { status, title, help } = PROBLEMS[code]
  return { code, status, title, help }
}
