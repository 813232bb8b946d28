import { ERROR_CODES, type ErrorCode } from '@keyway/sdk/protocol'
import { z } from 'zod'
import { PROBLEMS } from '../../problems.ts'
import { type Answer, ok } from '../answer.ts'
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
      description: 'The `type` of every problem document is such a URL.',
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
      handle({ params, incoming }) {
        const code = params.code as ErrorCode
        if (!Object.hasOwn(PROBLEMS, code)) throw notFound()
        return incoming.headers.accept?.includes('text/html') ? errorPage(code) : ok(explain(code))
      },
    }),
  ]
}

function explain(code: ErrorCode) {
  const { status, title, help } = PROBLEMS[code]
  return { code, status, title, help }
}

/** Contains only texts of PROBLEMS; their titles and codes have no markup. */
function errorPage(code: ErrorCode): Answer {
  const { status, title, help } = PROBLEMS[code]
  const escaped = help.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
  const body = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>${title} – Keyway</title>
<main>
<h1>${title}</h1>
<p><code>${code}</code>, HTTP status ${status}</p>
<p>${escaped}</p>
<p><a href="/docs">API documentation</a></p>
</main>
</html>
`
  return { status: 200, type: 'text/html; charset=utf-8', body }
}
