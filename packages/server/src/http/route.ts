import type { IncomingMessage } from 'node:http'
import type { ErrorCode } from '@keyway/sdk/protocol'
import type { z } from 'zod'
import type { KeywayError } from '../errors.ts'
import type { Caller } from '../network.ts'
import type { Answer } from './answer.ts'
import type { Access, Principal, PrincipalOf } from './authenticate.ts'
import type { BodyFormat } from './body.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** One answer that a route gives when all is well, as the API document shows it. */
export interface DocumentedAnswer {
  status: 200 | 201 | 204 | 304 | 426 | 503
  description: string
  /** Absent for an empty body. */
  schema?: z.ZodType
  example?: unknown
  /** JSON unless it says otherwise. */
  type?: string
}

/** The parameters of a path, typed from its literal: `/v1/agents/{connection_id}` has `connection_id`. */
export type ParamsOf<Path extends string> = Readonly<
  Record<string extends Path ? string : ParamNames<Path>, string>
>
type ParamNames<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ParamNames<Rest>
  : never

export interface RouteInput<A extends Access, Body, Query, Path extends string = string> {
  /** The authenticated caller, as required by `access`. */
  principal: PrincipalOf<A>
  body: Body
  /** The body of a route with `raw`; undefined elsewhere. */
  bytes: Buffer | undefined
  query: Query
  /** Path parameters: ids in their stored spelling, app ids as they are. */
  params: ParamsOf<Path>
  idempotencyKey: string | null
  caller: Caller
  requestId: string
  /** For content negotiation only. */
  incoming: IncomingMessage
  /** Checks the credential of this request again, for answers that go on. @throws KeywayError as the first check does */
  reauthenticate(): Promise<unknown>
}

export interface RawBody<Path extends string = string> {
  format: BodyFormat
  /** Validates the request's head before the body is read. @throws KeywayError */
  admit(request: { params: ParamsOf<Path>; incoming: IncomingMessage }): void
}

interface Declaration<
  Path extends string,
  A extends Access,
  Body extends z.ZodType,
  Query extends z.ZodType,
> {
  method: Method
  /** With `{name}` for each parameter; `{…_id}` is a UUID, `{app_id}` an app id, and anything else is 404. */
  path: Path
  /** The operationId. */
  operation: string
  tag: string
  summary: string
  description: string
  access: A
  body?: Body
  /** Values that the body may have; body.ts has the number for routes that say nothing. */
  maxJsonValues?: number
  /** Bytes of the body, where they differ from `MAX_BODY_BYTES`. */
  maxBodyBytes?: number
  /** The raw body, for routes that verify a signature over it. */
  raw?: RawBody<Path>
  query?: Query
  /** An example body that works, given what a signed-in person has. */
  example?: unknown
  idempotencyKey?: 'optional' | 'required'
  /** How a credential in the URL is refused, where 400 does not say it. */
  credentialInUrl?: () => KeywayError
  /** Its failures count against the caller's network; see failure-limits.ts. */
  countsFailures?: true
  answers: readonly DocumentedAnswer[]
  /** To whom the pages answer instead, where there are pages. */
  leftToPages?: (incoming: IncomingMessage) => boolean
  /** Beyond those that its access, body, query and parameters bring by themselves. */
  errors: readonly ErrorCode[]
  handle(input: RouteInput<A, z.output<Body>, z.output<Query>, Path>): Answer | Promise<Answer>
}

/** One declaration from which routing, validation, the API document and the test of who may call what all come. */
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
