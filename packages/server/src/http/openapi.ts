import { ERROR_CODES, type ErrorCode } from '@keyway/sdk/protocol'
import { z } from 'zod'
import { KEY_REFUSAL_CODES } from '../api-keys/api-key.ts'
import { KEYS_CREATE } from '../device-authorizations/keyway-cli.ts'
import { PROBLEMS } from '../problems.ts'
import { REQUEST_ID_HEADER } from '../request-id.ts'
import { EXAMPLE_IDS, exampleIdOf } from './example-ids.ts'
import { FIELD_DESCRIPTIONS, PARAMETER_DESCRIPTIONS } from './field-descriptions.ts'
import { IDEMPOTENCY_KEYS } from './idempotency-key.ts'
import { problem } from './openapi-schemas.ts'
import { paramNames, type Route } from './route.ts'
import { TAGS } from './tags.ts'

type JsonObject = Record<string, unknown>

export function createOpenApi(
  routes: readonly Route[],
  { publicUrl, version }: { publicUrl: string; version: string },
) {
  const schemas: JsonObject = {}
  const paths: Record<string, JsonObject> = {}
  for (const route of routes) {
    const method = route.method.toLowerCase()
    paths[route.path] = { ...paths[route.path], [method]: operationOf(route, schemas) }
  }
  // Adds the component `Problem`, which the error responses refer to by name (`errorsOf`).
  toSchema(problem, 'output', schemas)
  return {
    openapi: '3.1.0',
    info: {
      title: 'Keyway',
      version,
      description:
        'API keys, passwordless sign-in, short-lived agent tokens, and a hub whose connections end with their key.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: publicUrl }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths,
    components: {
      schemas,
      examples: Object.fromEntries(
        ERROR_CODES.map(code => [code, { value: problemExample(code, publicUrl) }]),
      ),
      securitySchemes: {
        accessToken: { type: 'http', scheme: 'bearer', description: 'The access token of a session.' },
        apiKey: { type: 'http', scheme: 'bearer', description: 'An API key (`svc_…`).' },
        app: { type: 'http', scheme: 'basic', description: "A registered app's id and secret." },
      },
    },
  }
}

function operationOf(route: Route, schemas: JsonObject): JsonObject {
  return {
    operationId: route.operation,
    tags: [route.tag],
    summary: route.summary,
    description: `${route.description}${accessNote(route)}`,
    security: securityOf(route),
    parameters: parametersOf(route, schemas),
    ...(route.body && {
      requestBody: {
        required: !route.body.safeParse({}).success,
        content: bodyContent(route, withDescriptions(toSchema(route.body, 'input', schemas))),
      },
    }),
    responses: { ...answersOf(route, schemas), ...errorsOf(route) },
  }
}

/** Adds descriptions to those fields of a body whose schema has none. */
function withDescriptions(schema: JsonObject): JsonObject {
  const fields = Object.entries((schema.properties ?? {}) as Record<string, JsonObject>)
  const properties = fields.map(([name, field]) => {
    const description = descriptionIn(field) ?? FIELD_DESCRIPTIONS[name]
    return [name, description === undefined ? field : { ...field, description }]
  })
  return { ...schema, ...(fields.length > 0 && { properties: Object.fromEntries(properties) }) }
}

function descriptionIn({ description, anyOf = [] }: JsonObject): string | undefined {
  return (description as string) ?? (anyOf as JsonObject[]).map(descriptionIn).find(Boolean)
}

function bodyContent({ form, example }: Route, schema: JsonObject): JsonObject {
  return {
    ...(!form?.only && { 'application/json': { schema, example } }),
    ...(form && { 'application/x-www-form-urlencoded': { schema, example } }),
  }
}

/** A sentence about the required authentication, with a space before it; empty for public calls and calls of apps. */
export function accessNote({ access }: Route): string {
  if (access === 'session') return ' Needs an access token: no API key may do this.'
  if (access === KEYS_CREATE)
    return ' Needs an access token, of a person or of a device that was approved: no API key may do this.'
  if (access === 'owner') return ' Needs an access token or an API key without scopes.'
  if (access === 'app' || access === 'public') return ''
  if (access === 'admin:session')
    return ' Needs the access token of an administrator who signed in within the last 30 minutes: no API key may do this.'
  if (access === 'admin:write')
    return ' Needs the access token of an administrator who signed in within the last 30 minutes, or an API key of an administrator with the scope `admin:write` or without scopes.'
  if (access === 'admin:read')
    return ' Needs the access token of an administrator or of support, or an API key of an administrator with the scope `admin:read` or without scopes.'
  return ` Needs an access token, or an API key with the scope \`${access}\` or without scopes.`
}

function securityOf({ access }: Route): JsonObject[] {
  if (access === 'public') return []
  if (access === 'app') return [{ app: [] }]
  return access === 'session' || access === 'admin:session' || access === KEYS_CREATE
    ? [{ accessToken: [] }]
    : [{ accessToken: [] }, { apiKey: [] }]
}

function parametersOf(route: Route, schemas: JsonObject): JsonObject[] {
  const pathParameters = paramNames(route.path).map(name => ({
    name,
    in: 'path',
    required: true,
    description: parameterDescription(name),
    ...paramSchema(name),
  }))
  const querySchema = route.query && toSchema(route.query, 'input', schemas)
  const properties = Object.entries((querySchema?.properties ?? {}) as Record<string, JsonObject>)
  const queryParameters = properties.map(([name, { description, ...schema }]) => ({
    name,
    in: 'query',
    required: false,
    description: description ?? parameterDescription(name),
    schema,
  }))
  return [
    ...pathParameters,
    ...queryParameters,
    ...(route.idempotencyKey ? [idempotencyHeader(route.idempotencyKey)] : []),
  ]
}

function parameterDescription(name: string): string | undefined {
  return PARAMETER_DESCRIPTIONS[name] ?? FIELD_DESCRIPTIONS[name]
}

function paramSchema(name: string): JsonObject {
  if (name === 'app_id') return { schema: { type: 'string' }, example: 'console' }
  if (name.endsWith('_id')) return { schema: { type: 'string', format: 'uuid' }, example: exampleIdOf(name) }
  return { schema: { type: 'string' }, example: 'rate_limited' }
}

function idempotencyHeader(requirement: 'optional' | 'required'): JsonObject {
  const { pattern, rule, example } = IDEMPOTENCY_KEYS[requirement]
  return {
    name: 'Idempotency-Key',
    in: 'header',
    required: requirement === 'required',
    description: `${rule[0]!.toUpperCase()}${rule.slice(1)}; the same for a repetition.`,
    schema: { type: 'string', pattern: pattern.source },
    example,
  }
}

function answersOf(route: Route, schemas: JsonObject): JsonObject {
  return Object.fromEntries(
    route.answers.map(({ status, description, schema, example, type = 'application/json', also }) => [
      String(status),
      {
        description,
        headers: { [REQUEST_ID_HEADER]: { schema: { type: 'string', format: 'uuid' } } },
        ...(schema && {
          content: {
            [type]: { schema: toSchema(schema, 'output', schemas), example },
            ...(also && { [also.type]: { schema: { type: 'string' }, example: also.example } }),
          },
        }),
      },
    ]),
  )
}

/**
 * The documented error codes of a route: its own, those of its access, body and path, and those that every route has.
 * Empty for a route with OAuth errors, which have codes of their own.
 */
export function errorCodesOf(route: Route): ErrorCode[] {
  if (route.errorFormat === 'oauth') return []
  const needsUser = route.access !== 'public' && route.access !== 'app'
  const codes: ErrorCode[] = [
    ...route.errors,
    'invalid_request',
    'method_not_allowed',
    'unavailable',
    ...(route.body ? (['invalid_json', 'payload_too_large', 'unsupported_media_type'] as const) : []),
    ...(route.access === 'public' ? [] : (['authentication_required'] as const)),
    ...(needsUser
      ? ([
          'invalid_token',
          'invalid_api_key',
          'rate_limited',
          ...KEY_REFUSAL_CODES.filter(code => code !== 'insufficient_scope'),
          'session_required',
        ] as const)
      : []),
    ...(route.access.startsWith('admin:') ? (['forbidden'] as const) : []),
    ...(route.access === 'admin:write' || route.access === 'admin:session'
      ? (['reauthentication_required'] as const)
      : []),
    ...(needsUser && route.access !== 'session' ? (['insufficient_scope'] as const) : []),
    ...(route.path.includes('{') ? (['not_found'] as const) : []),
  ]
  return [...new Set(codes)]
}

const OAUTH_ERRORS = {
  400: 'The request, the grant, the scope or the target is refused.',
  401: '`invalid_client`: the client did not authenticate.',
  413: 'The body is too large.',
  415: 'The body is of another type.',
  429: 'Too many requests. Wait as long as `Retry-After` says.',
  503: 'The service cannot reach its database right now.',
}
const OAUTH_ERROR_SCHEMA = {
  type: 'object',
  properties: { error: { type: 'string' }, error_description: { type: 'string' } },
  required: ['error', 'error_description'],
  additionalProperties: false,
}

function errorsOf(route: Route): JsonObject {
  if (route.errorFormat === 'oauth')
    return Object.fromEntries(
      Object.entries(OAUTH_ERRORS).map(([status, description]) => [
        status,
        { description, content: { 'application/json': { schema: OAUTH_ERROR_SCHEMA } } },
      ]),
    )
  const codesByStatus = Map.groupBy(errorCodesOf(route), code => PROBLEMS[code].status)
  return Object.fromEntries(
    [...codesByStatus]
      .filter(([status]) => !route.answers.some(answer => answer.status === status))
      .map(([status, codes]) => [
        String(status),
        {
          description: codes.map(code => `\`${code}\`: ${PROBLEMS[code].title}.`).join(' '),
          content: {
            'application/problem+json': {
              schema: { $ref: '#/components/schemas/Problem' },
              examples: Object.fromEntries(
                codes.map(code => [code, { $ref: `#/components/examples/${code}` }]),
              ),
            },
          },
        },
      ]),
  )
}

function problemExample(code: ErrorCode, publicUrl: string): JsonObject {
  const { status, title, help } = PROBLEMS[code]
  return {
    type: `${publicUrl}/errors/${code}`,
    title,
    status,
    detail: help,
    code,
    request_id: EXAMPLE_IDS.request,
  }
}

/** Converts a schema to JSON Schema. A named schema is added to the components, and a reference to it is returned. */
function toSchema(schema: z.ZodType, io: 'input' | 'output', schemas: JsonObject): JsonObject {
  const { $schema, $defs, id, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' }) as JsonObject
  for (const [name, definition] of Object.entries(($defs ?? {}) as Record<string, JsonObject>)) {
    schemas[name] = withComponentRefs(withoutId(definition))
  }
  const ownSchema = withComponentRefs(rest) as JsonObject
  if (typeof id !== 'string') return ownSchema
  schemas[id] = ownSchema
  return { $ref: `#/components/schemas/${id}` }
}

function withoutId({ id: _, ...rest }: JsonObject): JsonObject {
  return rest
}

function withComponentRefs(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withComponentRefs)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      name === '$ref' && typeof member === 'string'
        ? member.replace('#/$defs/', '#/components/schemas/')
        : withComponentRefs(member),
    ]),
  )
}
