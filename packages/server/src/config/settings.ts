import * as brand from './brand.ts'
import * as database from './database.ts'
import * as secret from './keyway-secret.ts'
import * as mail from './mail.ts'
import { rateWindows, rateWindowsOrOff } from './rate-windows.ts'
import { requestLimits } from './request-limits.ts'
import * as urls from './urls.ts'
import * as values from './values.ts'

/** One environment variable with its parser, and the texts of its error message and documentation. */
export interface Setting<T> {
  /** The text that is parsed if the variable is not set; null if the value is then derived or absent. */
  default: string | null
  /** The documented default where `default` is null; derived-defaults.ts implements it. */
  defaultMeaning?: string
  meaning: string
  example: string
  /** May be read from the file that `NAME_FILE` names; never contained in messages. */
  secret?: boolean
  /** Another variable that is read when this one is not set. */
  alias?: string
  parse: values.Parser<T>
}

const withDefault = <T>(setting: Setting<T> & { default: string }) => setting
const withoutDefault = <T>(setting: Omit<Setting<T>, 'default'>) => ({ ...setting, default: null })

const DAY_SECONDS = 86_400
const YEAR_SECONDS = 366 * DAY_SECONDS

/** Every setting, in the order of the documentation. docs/configuration.md is generated from it. */
export const settings = {
  KEYWAY_PUBLIC_URL: withoutDefault({
    defaultMeaning: '`http://localhost:<port>`',
    meaning:
      'The origin, without path, at which people and agents reach the service: the base of every link and the issuer of every token. Must be https unless the host is loopback or `KEYWAY_INSECURE_HTTP=true`.',
    example: 'https://keyway.example.com',
    parse: urls.origin,
  }),
  KEYWAY_INSECURE_HTTP: withDefault({
    default: 'false',
    meaning: 'Allows plain http for hosts other than loopback. The service prints a warning at start.',
    example: 'true',
    parse: values.flag,
  }),
  KEYWAY_HOST: withDefault({
    default: '127.0.0.1',
    meaning: 'The address to listen on.',
    example: '0.0.0.0',
    parse: values.host,
  }),
  KEYWAY_PORT: withDefault({
    default: '8080',
    meaning: 'The port to listen on; 0 picks a free one. `PORT` is read if this is not set.',
    example: '8080',
    alias: 'PORT',
    parse: values.port,
  }),
  KEYWAY_PROCESSES: withDefault({
    default: '1',
    meaning:
      'Processes that serve the port together: a number, or `auto` for one per core. Needs PostgreSQL; with SQLite, `auto` is 1. See [operations](operations.md#all-cores-of-a-machine).',
    example: 'auto',
    parse: values.processes,
  }),
  KEYWAY_DATA_DIR: withDefault({
    default: './data',
    meaning: 'The directory of local state. It is created with mode 0700, and its files with 0600.',
    example: '/var/lib/keyway',
    parse: values.directory,
  }),
  KEYWAY_DATABASE_URL: withoutDefault({
    defaultMeaning: '`sqlite:<data dir>/keyway.db`',
    meaning: '`sqlite:PATH` for one node, or `postgres://…` for one or more.',
    example: 'postgres://keyway:password@db.example.com:5432/keyway',
    secret: true,
    parse: database.database,
  }),
  KEYWAY_AUTO_MIGRATE: withDefault({
    default: 'true',
    meaning: 'Whether the database is migrated at start (under a lock). With `false`, run `keyway migrate`.',
    example: 'false',
    parse: values.flag,
  }),
  KEYWAY_EVENTS_URL: withoutDefault({
    defaultMeaning: 'follows the database',
    meaning:
      'The carrier of events between nodes: a direct `postgres://…` if a pooler is in front of the database, or `redis://…` (Redis, Valkey). Not used with SQLite, which has one node.',
    example: 'redis://redis.example.com:6379',
    secret: true,
    parse: database.events,
  }),
  KEYWAY_SECRET: withoutDefault({
    defaultMeaning: 'generated in the data dir with SQLite; required with PostgreSQL',
    meaning:
      'At least 32 random bytes in base64, as made by `openssl rand -base64 32`. Several are comma separated: the first encrypts, all decrypt, so the secret can be rotated without downtime.',
    example: '<output of: openssl rand -base64 32>',
    secret: true,
    parse: secret.secrets,
  }),
  KEYWAY_MAIL_URL: withDefault({
    default: 'inbox:',
    meaning:
      'The mail server or provider: `smtp://user:password@host:port` (STARTTLS is required unless the host is loopback or the URL ends in `?tls=off`), `smtps://…`, `resend://KEY`, `postmark://TOKEN`. `inbox:` keeps mail on this machine and shows it under `/inbox`; it needs a loopback public URL. Percent-encode special characters of user and password.',
    example: 'smtp://user:password@smtp.example.com:587',
    secret: true,
    parse: mail.mail,
  }),
  KEYWAY_MAIL_HOOK_SECRET: withoutDefault({
    defaultMeaning: 'none: `/hooks/mail/…` is 404',
    meaning:
      "Authenticates reports of bounces and complaints from the mail provider. For Resend, the signing secret of its webhook (`whsec_…`) for `/hooks/mail/resend`; for Postmark, the password in its webhook's URL, `https://keyway:SECRET@<host>/hooks/mail/postmark`.",
    example: '<the signing secret of the webhook>',
    secret: true,
    parse: mail.hookSecret,
  }),
  KEYWAY_MAIL_FROM: withDefault({
    default: 'Keyway <no-reply@localhost>',
    meaning: "The sender. Its display name is the product's name in mails and pages.",
    example: 'Example <no-reply@example.com>',
    parse: mail.sender,
  }),
  KEYWAY_SUPPORT_EMAIL: withoutDefault({
    defaultMeaning: '`support@localhost` with `inbox:`; required otherwise',
    meaning: 'The support address in every mail.',
    example: 'support@example.com',
    parse: mail.address,
  }),
  KEYWAY_LOGO: withoutDefault({
    defaultMeaning: 'the key of this service',
    meaning:
      'The file of the logo in pages and documents, a PNG or an SVG of at most 256 KiB; mails show it too if it is a PNG. One that is wider than one and a half times its height stands for the name, else the name is beside it. An SVG with scripts or references to other files is refused.',
    example: '/etc/keyway/logo.svg',
    parse: brand.imageFile,
  }),
  KEYWAY_LOGO_DARK: withoutDefault({
    defaultMeaning: '`KEYWAY_LOGO`',
    meaning: 'The same on dark backgrounds.',
    example: '/etc/keyway/logo-dark.svg',
    parse: brand.imageFile,
  }),
  KEYWAY_FAVICON: withoutDefault({
    defaultMeaning: '`KEYWAY_LOGO` if it is square, else the key',
    meaning: 'The file of the icon of tabs and bookmarks: an SVG, a PNG or an ICO, as wide as high.',
    example: '/etc/keyway/favicon.svg',
    parse: brand.imageFile,
  }),
  KEYWAY_TOUCH_ICON: withoutDefault({
    defaultMeaning: 'the key on the accent colour',
    meaning:
      'The file of the icon on home screens: a PNG, as wide as high, at least 120 pixels (180 are usual), without transparent corners.',
    example: '/etc/keyway/touch-icon.png',
    parse: brand.imageFile,
  }),
  KEYWAY_ACCENT_COLOR: withoutDefault({
    defaultMeaning: '`#3a4fcb,#a6b6ff`',
    meaning:
      'The colour of links and buttons in pages, mails and documents, or two of them: for the light and for the dark theme. The dark one follows from the light one if it is not given. Each must be legible (a contrast of 4.5:1); the message names the nearest colour that is.',
    example: '#0b6b50',
    parse: brand.accentColor,
  }),
  KEYWAY_TEXTS: withoutDefault({
    defaultMeaning: "this program's texts",
    meaning:
      'A folder with texts that replace those of pages and mails, in one file for each language, such as `de.json`. A text that is empty, lost a placeholder or is none that there is, is a mistake at start. See [operations](operations.md#languages-and-texts).',
    example: '/etc/keyway/texts',
    parse: values.directory,
  }),
  KEYWAY_TERMS_URL: withoutDefault({
    defaultMeaning: 'none',
    meaning: 'Your terms of service: linked from pages and mails.',
    example: 'https://example.com/terms',
    parse: brand.pageUrl,
  }),
  KEYWAY_PRIVACY_URL: withoutDefault({
    defaultMeaning: 'none',
    meaning: 'Your privacy notice: linked from pages and mails.',
    example: 'https://example.com/privacy',
    parse: brand.pageUrl,
  }),
  KEYWAY_SUPPORT_URL: withoutDefault({
    defaultMeaning: 'mail to `KEYWAY_SUPPORT_EMAIL`',
    meaning: 'Your help page: linked from pages. Mails have the support address as well.',
    example: 'https://example.com/help',
    parse: brand.pageUrl,
  }),
  KEYWAY_ADMIN_EMAILS: withoutDefault({
    defaultMeaning: 'none',
    meaning:
      'Addresses, comma separated, whose accounts become administrators when they next sign in. A later `keyway users set-role` wins until the address is removed and listed again; a removed address is no administrator any more from the next start on, unless nobody else would be.',
    example: 'ada@example.com,grace@example.com',
    parse: values.list(mail.emailAddress),
  }),
  KEYWAY_AUDIT_DAYS: withDefault({
    default: '400',
    meaning: 'For how many days the record of what administrators do is kept.',
    example: '400',
    parse: values.integer(1, 36_500),
  }),
  KEYWAY_VERIFY_URL: withoutDefault({
    defaultMeaning: '`<public url>/verify`',
    meaning:
      'The page that mailed links open. Must be https unless the host is loopback; its own query is kept. It receives valid sign-in tokens.',
    example: 'https://app.example.com/verify',
    parse: urls.verifyUrl,
  }),
  KEYWAY_MAGIC_LINK_LIMITS: withDefault({
    default: '5/minute,20/hour,50/day',
    meaning: 'Sign-in mails to one address, in sliding windows. `a+tag@` shares the limit of `a@`.',
    example: '5/minute,20/hour,50/day',
    parse: rateWindows,
  }),
  KEYWAY_MAGIC_LINK_NETWORK_LIMITS: withDefault({
    default: '60/minute,600/hour,5000/day',
    meaning:
      'Sign-in mails that one client network (IPv4 address, IPv6 /64) may request, in sliding windows; or `off`. The networks of one IPv6 /48 together have sixteen times the limit.',
    example: '60/minute,600/hour,5000/day',
    parse: rateWindowsOrOff,
  }),
  KEYWAY_FAILURE_LIMITS: withDefault({
    default: '60/minute',
    meaning:
      'Failed verifies, exchanges and refreshes of one client network (of an IPv6 /48: sixteen times the limit). Successes do not count, and valid keys and links are always accepted; beyond the limit typed codes are refused unchecked.',
    example: '60/minute',
    parse: rateWindows,
  }),
  KEYWAY_ACCESS_TOKEN_SECONDS: withDefault({
    default: '900',
    meaning: 'The lifetime of an access token, in seconds.',
    example: '900',
    parse: values.integer(1, DAY_SECONDS),
  }),
  KEYWAY_REFRESH_IDLE_SECONDS: withDefault({
    default: '2592000',
    meaning: 'A session ends this many seconds after its last refresh (30 days).',
    example: '2592000',
    parse: values.integer(1, YEAR_SECONDS),
  }),
  KEYWAY_SESSION_SECONDS: withDefault({
    default: '7776000',
    meaning: 'A session ends at the latest this many seconds after sign-in (90 days).',
    example: '7776000',
    parse: values.integer(1, YEAR_SECONDS),
  }),
  KEYWAY_REFRESH_GRACE_SECONDS: withDefault({
    default: '0',
    meaning:
      'For clients without `Idempotency-Key`: for this many seconds after a refresh, the previous refresh token returns the same successor again unless that was used.',
    example: '10',
    parse: values.integer(0, 300),
  }),
  KEYWAY_TRUSTED_PROXIES: withoutDefault({
    defaultMeaning: 'none',
    meaning: 'CIDRs of proxies, comma separated, whose `X-Forwarded-For` is used.',
    example: '10.0.0.0/8,192.168.0.0/16',
    parse: values.list(values.cidr),
  }),
  KEYWAY_CLIENT_REGISTRATION: withDefault({
    default: 'false',
    meaning:
      'Lets OAuth clients register themselves at `/oauth/register` (RFC 7591). People are always asked before such a client gets anything.',
    example: 'true',
    parse: values.flag,
  }),
  KEYWAY_CLIENT_METADATA_DOCUMENTS: withDefault({
    default: 'false',
    meaning:
      'Allows client ids that are https URLs of a document with the metadata of the client, as MCP clients have. People are always asked.',
    example: 'true',
    parse: values.flag,
  }),
  KEYWAY_WEBHOOK_PRIVATE_NETWORKS: withoutDefault({
    defaultMeaning: 'none: only public addresses, only by https',
    meaning:
      'CIDRs, comma separated, in which the service may call webhooks and URLs of apps (back-channel logout, `jwks_uri`, client metadata documents), by http too. Loopback and private addresses are not called otherwise.',
    example: '10.20.0.0/16',
    parse: values.list(values.cidr),
  }),
  KEYWAY_LOW_BALANCE: withDefault({
    default: '0.50',
    meaning:
      'The mark, in dollars, of the webhook event `balance.low`: it is sent when a charge takes a balance from the mark or above to below it. `0` sends none.',
    example: '5.00',
    parse: values.amountOrZero,
  }),
  KEYWAY_CORS_ORIGINS: withoutDefault({
    defaultMeaning: 'none',
    meaning:
      'Other origins, comma separated, that may call the API and open the hub from a browser. Credentials are never allowed.',
    example: 'https://app.example.com',
    parse: values.list(urls.corsOrigin),
  }),
  KEYWAY_MAX_ACTIVE_KEYS: withDefault({
    default: '100',
    meaning:
      'Active keys of one user; replaced keys count until their overlap ends. A rotation may exceed the limit by one until then.',
    example: '100',
    parse: values.integer(1, 100_000),
  }),
  KEYWAY_EXCHANGE_LIMITS: withDefault({
    default: '600/minute',
    meaning:
      'Successful exchanges of one key, and tokens of one app for itself, on one node, in sliding windows. A token is valid for 15 minutes, so an agent needs about one every ten minutes.',
    example: '600/minute',
    parse: rateWindows,
  }),
  KEYWAY_KEY_CREATION_LIMITS: withDefault({
    default: '100/hour,500/day',
    meaning: 'Keys that one user may create, rotations included, in sliding windows.',
    example: '100/hour,500/day',
    parse: rateWindows,
  }),
  KEYWAY_KEY_LIMITS: withoutDefault({
    defaultMeaning: 'none',
    meaning:
      'How many requests (exchanges, API calls, calls that apps `consume`) every key may make at most over all nodes, in sliding windows of a second, minute, hour or day. A key may have lower `limits`; higher ones are refused.',
    example: '50/second,10000/day',
    parse: requestLimits,
  }),
  KEYWAY_KEY_DEFAULT_LIMITS: withoutDefault({
    defaultMeaning: 'none',
    meaning:
      'The `limits` of requests that a new key gets which is made without any. Its owner may change them.',
    example: '100/minute',
    parse: requestLimits,
  }),
  KEYWAY_PERSON_LIMITS: withoutDefault({
    defaultMeaning: 'none',
    meaning:
      'How many requests all keys of one person together may make, as `KEYWAY_KEY_LIMITS` counts them.',
    example: '100/second,50000/day',
    parse: requestLimits,
  }),
  KEYWAY_LIMITS_WHEN_CUT_OFF: withDefault({
    default: 'closed',
    meaning:
      'What a node does about limits of keys while it cannot reach the database and what it holds of them is used up or 15 s old: `closed` refuses with 503, `open` lets each node go up to the whole limit by its own count.',
    example: 'open',
    parse: values.oneOf('closed', 'open'),
  }),
  KEYWAY_HUB_MAX_CONNECTIONS: withDefault({
    default: '1000',
    meaning: 'Live connections of one user on one node.',
    example: '1000',
    parse: values.integer(1, 1_000_000),
  }),
  KEYWAY_HUB_DELIVERIES: withDefault({
    default: '5000',
    meaning:
      'Messages a second that one user may have delivered on one node, counted for each receiver; those of two seconds may come at once. A core delivers some 48,000 a second.',
    example: '5000',
    parse: values.integer(1, 1_000_000),
  }),
  KEYWAY_HUB_DELIVERY_MIB: withDefault({
    default: '16',
    meaning: 'MiB of these messages a second; those of two seconds may come at once.',
    example: '16',
    parse: values.integer(1, 10_000),
  }),
  KEYWAY_METRICS_PORT: withoutDefault({
    defaultMeaning: 'none',
    meaning:
      'The port of `/metrics`. Without it `/metrics` is on the main port: for clients with `KEYWAY_METRICS_TOKEN`, or only for this machine if the listening address and the public URL are loopback.',
    example: '9090',
    parse: values.port,
  }),
  KEYWAY_METRICS_TOKEN: withoutDefault({
    defaultMeaning: 'none',
    meaning:
      'The token that Prometheus must send as `Authorization: Bearer …` to read `/metrics`, on either port. At least 16 characters, as made by `openssl rand -hex 32`.',
    example: '<output of: openssl rand -hex 32>',
    secret: true,
    parse: values.bearerToken,
  }),
  KEYWAY_JOURNAL_DIR: withoutDefault({
    defaultMeaning: '`<data dir>/journal` with SQLite',
    meaning:
      'The folder of the journal, an append-only record of endings, grants and charges, which a restore or a failover re-applies.',
    example: '/var/lib/keyway-journal',
    parse: values.directory,
  }),
  KEYWAY_LOG_LEVEL: withDefault({
    default: 'info',
    meaning: 'The log level; JSON lines on standard output. Successful requests are logged at `debug` only.',
    example: 'debug',
    parse: values.oneOf('debug', 'info', 'warn', 'error', 'silent'),
  }),
}

export type SettingName = keyof typeof settings

/** The type of each parsed setting; includes undefined for those without a default. */
export type Values = {
  [Name in SettingName]:
    | ReturnType<(typeof settings)[Name]['parse']>
    | ((typeof settings)[Name]['default'] extends string ? never : undefined)
}
