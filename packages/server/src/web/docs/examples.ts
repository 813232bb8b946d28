import { bodyOf, type Operation, type Parameter } from './api-document.ts'
import type { Snippet } from './code.ts'

/** Examples that call an operation in curl, TypeScript and Python; they run unchanged once their variables are set. */
export function examplesOf(operation: Operation, publicUrl: string): Snippet[] {
  const call = callOf(operation, publicUrl)
  const method = SDK_METHODS[operation.operationId]
  return [
    { language: 'sh', text: curlCommand(call) },
    { language: 'ts', text: method ? typescriptSdk(call, method) : fetchCall(call) },
    { language: 'python', text: method ? pythonSdk(call, method) : httpxCall(call) },
  ]
}

/**
 * The SDK method of each operation. In TypeScript path parameters come first, then the body as one object, or the
 * fields that are listed here; in Python fields are keyword arguments.
 */
export const SDK_METHODS: Readonly<Record<string, { name: string; fields?: readonly string[] }>> = {
  sendMagicLink: { name: 'sendMagicLink' },
  verifyMagicLink: { name: 'verifyMagicLink' },
  exchangeApiKey: { name: 'exchange' },
  revokeToken: { name: 'revoke', fields: ['token'] },
  introspectToken: { name: 'apps.introspect', fields: ['token'] },
  createApiKey: { name: 'apiKeys.create' },
  listApiKeys: { name: 'apiKeys.list' },
  getApiKey: { name: 'apiKeys.get' },
  updateApiKey: { name: 'apiKeys.update' },
  revokeApiKey: { name: 'apiKeys.revoke' },
  rotateApiKey: { name: 'apiKeys.rotate' },
  getApiKeyUsage: { name: 'apiKeys.usage' },
  getUsage: { name: 'usage' },
  getAccount: { name: 'account.get' },
  updateAccount: { name: 'account.update' },
  listLedger: { name: 'account.ledger' },
  authorizeCharges: { name: 'account.authorizeCharges' },
  withdrawCharges: { name: 'account.withdrawCharges' },
  listConsents: { name: 'account.consents' },
  withdrawConsent: { name: 'account.withdrawConsent' },
  listSecurityEvents: { name: 'account.securityEvents' },
  listSessions: { name: 'sessions.list' },
  endSession: { name: 'sessions.revoke' },
  endOtherSessions: { name: 'sessions.revokeOthers' },
  listAgents: { name: 'agents.list' },
  sendToAgent: { name: 'agents.send', fields: ['data'] },
  disconnectAgent: { name: 'agents.disconnect' },
  followRevocations: { name: 'apps.revocations' },
}

interface Call {
  publicUrl: string
  method: string
  path: string
  /** Values of the path parameters. */
  params: string[]
  /** The credential of the call: for `owner` a session or an API key, for `app` the app's id and secret. */
  credential: 'session' | 'owner' | 'app' | 'none'
  idempotencyKey: string | null
  body: Record<string, unknown> | null
  isForm: boolean
}

function callOf(operation: Operation, publicUrl: string): Call {
  const { method, security, parameters } = operation
  const pathParameters = parameters.filter(each => each.in === 'path')
  const body = bodyOf(operation)
  const schemes = security.flatMap(each => Object.keys(each))
  const idempotencyKey = parameters.find(({ name }) => name === 'Idempotency-Key')
  return {
    publicUrl,
    method,
    path: pathParameters.reduce(
      (path, each) => path.replace(`{${each.name}}`, exampleOf(each)),
      operation.path,
    ),
    params: pathParameters.map(exampleOf),
    credential: schemes.includes('app')
      ? 'app'
      : schemes.includes('apiKey')
        ? 'owner'
        : schemes.length > 0
          ? 'session'
          : 'none',
    idempotencyKey: idempotencyKey ? exampleOf(idempotencyKey) : null,
    body: body ? ((body.content.example ?? {}) as Record<string, unknown>) : null,
    isForm: body?.type === FORM_TYPE,
  }
}

const FORM_TYPE = 'application/x-www-form-urlencoded'

export function exampleOf({ example, schema }: Parameter): string {
  return String(example ?? schema.examples?.[0] ?? schema.enum?.[0] ?? '')
}

function curlCommand({ method, publicUrl, path, credential, idempotencyKey, body, isForm }: Call): string {
  const lines = [
    `curl -sS ${method === 'GET' || (method === 'POST' && body) ? '' : `-X ${method} `}'${publicUrl}${path}'`,
  ]
  if (credential === 'app') lines.push(`-u "$KEYWAY_APP_ID:$KEYWAY_APP_SECRET"`)
  else if (credential !== 'none')
    lines.push(`-H "Authorization: Bearer ${credential === 'owner' ? '$KEYWAY_API_KEY' : '$ACCESS_TOKEN'}"`)
  if (idempotencyKey) lines.push(`-H 'Idempotency-Key: ${idempotencyKey}'`)
  if (body && isForm)
    lines.push(
      ...Object.entries(body).map(
        ([name, value]) => `--data-urlencode '${name}=${escapeForShell(String(value))}'`,
      ),
    )
  else if (body)
    lines.push("-H 'Content-Type: application/json'", `-d '${escapeForShell(JSON.stringify(body))}'`)
  return lines.join(' \\\n  ')
}

/** Escapes a text that stands in single quotes in a shell. */
function escapeForShell(text: string): string {
  return text.replaceAll("'", `'\\''`)
}

const CLIENTS = {
  ts: {
    owner: url => `new Keyway({ url: '${url}' }) // the key comes from KEYWAY_API_KEY`,
    session: url =>
      `new Keyway({ url: '${url}' })\n// signed in with keyway.sendMagicLink and keyway.verifyMagicLink`,
    none: url => `new Keyway({ url: '${url}' })`,
    app: url =>
      `new Keyway({\n  url: '${url}',\n  app: { id: process.env.KEYWAY_APP_ID, secret: process.env.KEYWAY_APP_SECRET },\n})`,
  },
  python: {
    owner: url => `Keyway(url="${url}")  # the key comes from KEYWAY_API_KEY`,
    session: url => `Keyway(url="${url}")  # signed in with send_magic_link and verify_magic_link`,
    none: url => `Keyway(url="${url}")`,
    app: url => `Keyway(url="${url}", app=(os.environ["KEYWAY_APP_ID"], os.environ["KEYWAY_APP_SECRET"]))`,
  },
} satisfies Record<string, Record<Call['credential'], (url: string) => string>>

type SdkMethod = (typeof SDK_METHODS)[string]

function typescriptSdk({ publicUrl, credential, params, body }: Call, { name, fields }: SdkMethod): string {
  const values = fields
    ? fields.map(field => body?.[field])
    : body && Object.keys(body).length > 0
      ? [body]
      : []
  const args = [...params.map(param => `'${param}'`), ...values.map(value => javascriptLiteral(value))]
  return `import { Keyway } from '@keyway/sdk'

const keyway = ${CLIENTS.ts[credential](publicUrl)}

const answer = await keyway.${name}(${args.join(', ')})
console.log(answer)`
}

function fetchCall({ publicUrl, method, path, credential, idempotencyKey, body, isForm }: Call): string {
  const headers: string[] = []
  // biome-ignore-start lint/suspicious/noTemplateCurlyInString: code that is shown
  if (credential === 'app')
    headers.push(
      'Authorization: `Basic ${btoa(`${process.env.KEYWAY_APP_ID}:${process.env.KEYWAY_APP_SECRET}`)}`',
    )
  else if (credential !== 'none')
    headers.push(
      `Authorization: \`Bearer \${process.env.${credential === 'owner' ? 'KEYWAY_API_KEY' : 'ACCESS_TOKEN'}}\``,
    )
  if (idempotencyKey) headers.push(`'Idempotency-Key': '${idempotencyKey}'`)
  if (body && !isForm) headers.push("'Content-Type': 'application/json'")
  // biome-ignore-end lint/suspicious/noTemplateCurlyInString: until here
  const options = [
    ...(method === 'GET' ? [] : [`method: '${method}'`]),
    ...(headers.length > 0 ? [`headers: {\n    ${headers.join(',\n    ')},\n  }`] : []),
    ...(body
      ? [
          `body: ${isForm ? `new URLSearchParams(${javascriptLiteral(body)})` : `JSON.stringify(${javascriptLiteral(body)})`}`,
        ]
      : []),
  ]
  const optionsArgument = options.length > 0 ? `, {\n  ${options.join(',\n  ')},\n}` : ''
  return `const answer = await fetch('${publicUrl}${path}'${optionsArgument})
console.log(answer.status, await answer.text())`
}

/** Formats a value as a literal of JavaScript, as a person would write it. */
function javascriptLiteral(value: unknown): string {
  return JSON.stringify(value, null, 2)
    .replace(/^( *)"([A-Za-z_]\w*)":/gm, '$1$2:')
    .replaceAll('\n', '\n  ')
    .replace(/\n {2}([\]}])$/, '\n$1')
}

function pythonSdk({ publicUrl, credential, params, body }: Call, { name, fields }: SdkMethod): string {
  const bodyFields = Object.entries(body ?? {}).filter(([field]) => !fields || fields.includes(field))
  const args = [
    ...params.map(param => `"${param}"`),
    ...bodyFields.map(([field, value]) => `${field}=${pythonLiteral(value)}`),
  ]
  const [client, comment = ''] = CLIENTS.python[credential](publicUrl).split('  #')
  return `import asyncio
${credential === 'app' ? 'import os\n' : ''}from keyway import Keyway

async def main():
    async with ${client} as keyway:${comment && `  #${comment}`}
        answer = await keyway.${snakeCase(name)}(${args.join(', ')})
        print(answer)

asyncio.run(main())`
}

function httpxCall({ publicUrl, method, path, credential, idempotencyKey, body, isForm }: Call): string {
  const headers: string[] = []
  if (credential !== 'none' && credential !== 'app')
    headers.push(
      `"Authorization": f"Bearer {os.environ['${credential === 'owner' ? 'KEYWAY_API_KEY' : 'ACCESS_TOKEN'}']}"`,
    )
  if (idempotencyKey) headers.push(`"Idempotency-Key": "${idempotencyKey}"`)
  const args = [
    `"${method}"`,
    `"${publicUrl}${path}"`,
    ...(headers.length > 0 ? [`headers={${headers.join(', ')}}`] : []),
    ...(credential === 'app' ? [`auth=(os.environ["KEYWAY_APP_ID"], os.environ["KEYWAY_APP_SECRET"])`] : []),
    ...(body ? [`${isForm ? 'data' : 'json'}=${pythonLiteral(body)}`] : []),
  ]
  return `${credential === 'none' ? '' : 'import os\n'}import httpx

answer = httpx.request(
    ${args.join(',\n    ')},
)
print(answer.status_code, answer.text)`
}

function pythonLiteral(value: unknown): string {
  if (value === null) return 'None'
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (Array.isArray(value)) return `[${value.map(pythonLiteral).join(', ')}]`
  if (typeof value !== 'object') return JSON.stringify(value)
  return `{${Object.entries(value)
    .map(([name, member]) => `${JSON.stringify(name)}: ${pythonLiteral(member)}`)
    .join(', ')}}`
}

export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)
}
