/** An occurrence of a secret, with the context that decides whether it is allowed. */
export interface Finding {
  kind: string
  place: string
  /** The line up to the last character of the secret. */
  before: string
}

/** A place where a secret is output on purpose, to its recipient, or where another number may equal a login code. */
interface Allowance {
  kinds: readonly string[]
  place: RegExp
  before?: RegExp
  why: string
}

const ALLOWED: readonly Allowance[] = [
  {
    kinds: ['link token', 'login code'],
    place: /^stdout of /,
    before: /^(Sign-in link|Link to confirm the (change of address|new address)) for \S+: /,
    why: '`inbox:`, the default on a loopback address, keeps mail on this machine: this line is the mail',
  },
  {
    kinds: ['link token', 'login code'],
    place: /^stdout of keyway inbox\b/,
    why: 'the command that reads that mail',
  },
  {
    kinds: ['app secret'],
    place: /^stdout of keyway apps secret\b/,
    why: 'the command that makes one and shows it once',
  },
  {
    kinds: ['form-token MAC', 'login id', 'new-key-id MAC', 'device-approval MAC'],
    place: /^error answer of /,
    before: /<input type="hidden" name="(form_token|login_id|once|proof)" value="[^"]*$/,
    why: 'a page that refuses a form shows it again, to the browser that sent it',
  },
  {
    kinds: ['random token'],
    place: /^error answer of /,
    before: /^set-cookie: (__Host-)?keyway_form=[^;]*$/i,
    why: "the browser's own cookie, which its forms are bound to",
  },
  {
    kinds: ['app secret', 'random token'],
    place: /^stdout of (keyway apps add|node)\b/,
    before: /^(client_secret: )?sva_[\w-]{43}$/,
    why: 'the commands that make one and show it once; npx runs them as node',
  },
  {
    kinds: ['random token'],
    place: /^stdout of /,
    before: /\/device\?user_code=[A-Z]{4}-[A-Z]{4}&ticket=[\w-]*$/,
    why: "the SDK's command shows the page for the person to open; who opens it must sign in and compare the code",
  },
  {
    kinds: ['login code'],
    place: /^metrics of /,
    before: /^\w+(\{.*\})? \d+$/,
    why: "the value of a metric counts bytes or seconds: that it has a code's digits is chance",
  },
]

export function isHandedOut({ kind, place, before }: Finding): boolean {
  return ALLOWED.some(
    allowed =>
      allowed.kinds.includes(kind) && allowed.place.test(place) && (allowed.before?.test(before) ?? true),
  )
}
