/** The parts of the OpenAPI document that the pages show. */
export interface ApiDocument {
  tags: readonly { name: string; description: string }[]
  paths: Readonly<Record<string, Readonly<Record<string, ApiOperation>>>>
  components: { schemas: Readonly<Record<string, Schema>> }
}

export interface ApiOperation {
  operationId: string
  tags: readonly string[]
  summary: string
  description: string
  security: readonly Readonly<Record<string, unknown>>[]
  parameters: readonly Parameter[]
  requestBody?: { required: boolean; content: Readonly<Record<string, Content>> }
  responses: Readonly<Record<string, { description: string; content?: Readonly<Record<string, Content>> }>>
}

export interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  required: boolean
  description?: string
  schema: Schema
  example?: unknown
}

export interface Content {
  schema: Schema
  example?: unknown
  examples?: Readonly<Record<string, unknown>>
}

export interface Schema {
  $ref?: string
  type?: string | readonly string[]
  description?: string
  properties?: Readonly<Record<string, Schema>>
  required?: readonly string[]
  items?: Schema
  anyOf?: readonly Schema[]
  enum?: readonly unknown[]
  examples?: readonly unknown[]
}

export interface Operation extends ApiOperation {
  method: string
  path: string
  tag: string
}

/** All operations, in the order of the tags and, within a tag, of the routes. */
export function operationsOf(document: ApiDocument): Operation[] {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      ...operation,
      method: method.toUpperCase(),
      path,
      tag: operation.tags[0]!,
    })),
  )
  return document.tags.flatMap(({ name }) => operations.filter(({ tag }) => tag === name))
}

/** Tags whose operations are documented for operators only. */
const OPERATOR_TAGS = ['Administration']

export function isForOperators(tag: string): boolean {
  return OPERATOR_TAGS.includes(tag)
}

/** The body with its first media type, which is JSON if there are several; null for an operation without a body. */
export function bodyOf({ requestBody }: ApiOperation): { type: string; content: Content } | null {
  const [type, content] = Object.entries(requestBody?.content ?? {})[0] ?? []
  return type && content ? { type, content } : null
}
