import type { IncomingMessage } from 'node:http'
import type { ErrorCode } from '@keyway/sdk/protocol'
import type { z } from 'zod'
import type { KeywayError } from '../errors.ts'
import type { Caller } from '../network.ts'
import type { Answer } from './answer.ts'
import type { Access, Principal, PrincipalOf } from './authenticate.ts'
import type { BodyFormat } from './body.ts'
import type { CorsPolicy } from './cors.ts'
import type { Tag } from './tags.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/**
 * A response that the handler of a route returns, for the API documentation. The route's `errors` documents those for
 * thrown errors.
 */
export interface DocumentedAnswer {
  status: 200 | 201 | 204 | 302 | 304 | 426 | 503
  description: string
  /** Absent for an empty body. */
  schema?: z.ZodType
  example?: unknown
  /** The media type; JSON by default. */
  type?: string
  /** An alternative representation in another media type, for clients that prefer it. */
  also?: { type: string; example: string }
}

/** The parameters of a path, typed from its literal: `/v1/agents/{connection_id}` has `connection_id`. */
export type ParamsOf<Path extends string> = Readonly<
  Record<string extends Path ? string : ParamNames<Path>, string>
>
type ParamNames<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ParamNames<Rest>
  : never

export interface RouteInput<A extends Access, Body, Query, Path extends string = string> {
  /** The authenticated caller, as required by `access`; null for `public`. */
  principal: PrincipalOf<A>
  body: Body
  /** The body of a route with `raw`; undefined elsewhere. */
  bytes: Buffer | undefined
  query: Query
  /** Path parameters: UUIDs in canonical form, others unchanged. */
  params: ParamsOf<Path>
  idempotencyKey: string | null
  caller: Caller
  requestId: string
  /** For reading headers such as Accept; the body and the credential are read before the handler runs. */
  incoming: IncomingMessage
  /** Authenticates this request again, for long streams. @throws KeywayError as the first authentication does */
  reauthenticate(): Promise<unknown>
}

export interface RawBody<Path extends string = string> {
  format: BodyFormat
  /** Validates the head of the request, before the body is read. @throws KeywayError */
  validateHead(request: { params: ParamsOf<Path>; incoming: IncomingMessage }): void
}

interface Declaration<
  Path extends string,
  A extends Access,
  Body extends z.ZodType,
  Query extends z.ZodType,
> {
  method: Method
  /**
   * Has `{name}` for each parameter. `{…_id}` must be a UUID, and `{app_id}` an app id or the URL of a client, else the
   * response is 404.
   */
  path: Path
  /** The `operationId` of the call in the OpenAPI document. */
  operation: string
  tag: Tag
  summary: string
  description: string
  access: A
  body?: Body
  /** Maximum number of values in the JSON body; MAX_JSON_VALUES by default. */
  maxJsonValues?: number
  /** Maximum size of the body; MAX_BODY_BYTES by default. */
  maxBodyBytes?: number
  /** Present if the handler gets the body as bytes, to verify a signature over them. */
  raw?: RawBody<Path>
  query?: Query
  /**
   * Present if the body may be a form, in which each field occurs once. `only`: the body may not be JSON. `numbers`:
   * the fields that are parsed as numbers.
   */
  form?: { only?: true; numbers?: readonly string[] }
  /** The format of refusals; problem documents by default. */
  errorFormat?: 'oauth'
  /** Which origins may call the route besides those of KEYWAY_CORS_ORIGINS: any, or those of public clients. */
  cors?: CorsPolicy
  /** A valid example body. */
  example?: unknown
  idempotencyKey?: 'optional' | 'required'
  /** The error for a credential in the URL; `invalid_request` by default. */
  credentialInUrl?: () => KeywayError
  /**
   * Whether errors of the route whose code a wrong guess of a credential gets (`isGuess` in problems.ts) count in the
   * limits of the client's network (failure-limits.ts). An error whose own `isGuess` is true counts on every route.
   */
  countsFailures?: true
  answers: readonly DocumentedAnswer[]
  /** Whether the pages, if they are served, answer this request instead. */
  leftToPages?: (incoming: IncomingMessage) => boolean
  /** The route's own error codes, besides those that follow from its access, body, query and path (`errorCodesOf`). */
  errors: readonly ErrorCode[]
  handle(input: RouteInput<A, z.output<Body>, z.output<Query>, Path>): Answer | Promise<Answer>
}

/**
 * A call of the API. Routing, validation, authentication, the API documentation and the tests of access use the same
 * declaration.
 */
export interface Route extends Omit<Declaration<string, Access, z.ZodType, z.ZodType>, 'handle'> {
  handle(input: RouteInput<Access, unknown, unknown>): Answer | Promise<Answer>
}

export function route<
  const Path extends string,
  A extends Access,
  Body extends z.ZodType = z.ZodUndefined,
  Query extends z.ZodType = z.ZodUndefined,
>(declaration: Declaration<Path, A, Body, Query>): Route {
  return declaration as unknown as Route
}

export function paramNames(path: string): string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(match => match[1]!)
}

export type { Principal }
