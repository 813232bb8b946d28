import Ajv2020 from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'

interface DocumentedResponse {
  status: number
  headers: Headers
  body: unknown
}

/** Validates responses against the published document, not against the code that generates it. */
export function createDocumentValidator(document: object) {
  const ajv = new Ajv2020.default({ strict: false, allErrors: true })
  addFormats.default(ajv)
  return {
    /** Describes how a response violates the document; null if it does not. Of bodies, only JSON is validated. */
    problemOf(method: string, path: string, { status, headers, body }: DocumentedResponse): string | null {
      const responses = nodeAt(document, ['paths', path, method.toLowerCase(), 'responses'])
      const declaredResponse = responses && nodeAt(responses, [String(status)])
      if (!declaredResponse) return `${status} is not documented`
      const content = nodeAt(declaredResponse, ['content'])
      if (!content) return null
      const type = (headers.get('content-type') ?? '').split(';')[0]!
      const schema = nodeAt(content, [type, 'schema'])
      if (!schema) return `${type} is not documented for ${status}`
      if (!type.endsWith('json')) return null
      // The schema refers to the document's components, so they are included.
      const validate = ajv.compile({ ...schema, components: nodeAt(document, ['components']) })
      return validate(body) ? null : ajv.errorsText(validate.errors)
    },
  }
}

function nodeAt(from: object, names: string[]): object | undefined {
  let node: object | undefined = from
  for (const name of names) node = (node as Record<string, object> | undefined)?.[name]
  return node
}
