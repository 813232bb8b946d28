export interface Finding {
  check: string
  ok: boolean
  /** What was found; where it is not ok, what to do. */
  detail: string
}

/** What throws is a finding: its message says what to do. */
export async function look(check: string, ask: () => Promise<string>): Promise<Finding> {
  try {
    return { check, ok: true, detail: await ask() }
  } catch (error) {
    return { check, ok: false, detail: (error as Error).message }
  }
}
