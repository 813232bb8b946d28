/**
 * The ids in the examples of the API documentation, one for each kind of object, so that the same id appears in an
 * example call and in its example answer.
 */
export const EXAMPLE_IDS = {
  user: '019aa2c4-6f00-7c1a-9d55-0a8b6b9d2f11',
  key: '019aa2c4-7a10-7b3e-8c11-5f6e7d8c9b0a',
  session: '019aa2c4-81c2-7d40-a6f3-2b9c4e7d1a58',
  connection: '019aa2c4-8b35-7e62-b0d4-93f1c5a8e274',
  node: '019aa2c4-9c4e-7a83-9b60-1d8e2f7c3a95',
  login: '019aa2c4-a471-7c5d-a3e7-6f0b9d4c8e12',
  entry: '019aa2c4-ad06-7e9b-b218-8a5c3f1d7e40',
  event: '019aa2c4-b59a-7b24-8d7c-f2e60a9b1c53',
  mail: '019aa2c4-be2f-7d68-95a1-4c7b8e0f2d96',
  invitation: '019aa2c4-c6b3-7fa5-ae34-0b9d5c8f1e72',
  webhook: '019aa2c4-cf48-7a1e-86d9-e3f27b4a0c85',
  delivery: '019aa2c4-d7dc-7c92-b75f-5a1e9c0d3b48',
  secret: '019aa2c4-e071-7e3d-9c08-d6b4f8a2e517',
  admin: '019aa2c4-e905-7b76-a142-7f3c0e9d5b64',
  signing_key: '019aa2c4-fa2e-7b51-a7c8-9d0f3e6b1c42',
  request: '019aa2c4-f19a-7da9-8f6b-2e8d1c5a7b30',
} as const

/** The example of a path parameter such as `key_id`. @throws Error if EXAMPLE_IDS has none */
export function exampleIdOf(parameter: string): string {
  const ids: Readonly<Record<string, string>> = EXAMPLE_IDS
  const kind = parameter.replace(/_id$/, '')
  if (!Object.hasOwn(ids, kind)) throw new Error(`The parameter ${parameter} has no example id.`)
  return ids[kind]!
}
