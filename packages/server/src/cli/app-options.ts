import { type AppSettings, DEFAULT_APP_SETTINGS } from '../apps/app.ts'
import { isSigningAlg } from '../apps/app-settings.ts'
import { UsageError } from '../operator-error.ts'
import { SIGNING_ALGS } from '../signing-keys/signing-key.ts'
import type { CommandContext, CommandOption } from './command.ts'

/** The options of `apps add` and `apps set`. */
export const APP_OPTIONS = {
  audience: { value: 'URL', meaning: 'the audience of tokens for its own services' },
  'verify-url': { value: 'URL', meaning: 'its own page that sign-in links open' },
  'redirect-uri': {
    value: 'URL',
    meaning: 'where a browser returns with a code (repeatable)',
    repeated: true,
  },
  'logout-uri': { value: 'URL', meaning: 'where a browser goes after logout (repeatable)', repeated: true },
  'backchannel-logout-uri': { value: 'URL', meaning: 'called when a session of it ends' },
  'token-alg': { value: SIGNING_ALGS.join('|'), meaning: 'signs its tokens and those for its audience' },
  'id-token-alg': { value: SIGNING_ALGS.join('|'), meaning: 'signs its id tokens; RS256 by default' },
  scope: {
    value: 'SCOPE',
    meaning: 'one more scope that it may ask people for (repeatable)',
    repeated: true,
  },
  trusted: { meaning: 'people are not asked for their consent' },
  public: { meaning: 'it runs where no secret can be kept, for example in browsers' },
  'jwks-uri': { value: 'URL', meaning: 'its public keys, for private_key_jwt instead of a secret' },
  'require-pkce': { meaning: 'refuse requests without PKCE also with a nonce' },
} satisfies Record<string, CommandOption>

type OptionSettings = { [Name in keyof typeof APP_OPTIONS]: keyof typeof DEFAULT_APP_SETTINGS }
const SETTING_OF_OPTION: OptionSettings = {
  audience: 'audience',
  'verify-url': 'verifyUrl',
  'redirect-uri': 'redirectUris',
  'logout-uri': 'logoutUris',
  'backchannel-logout-uri': 'backchannelLogoutUri',
  'token-alg': 'tokenAlg',
  'id-token-alg': 'idTokenAlg',
  scope: 'scopes',
  trusted: 'trusted',
  public: 'isPublic',
  'jwks-uri': 'jwksUri',
  'require-pkce': 'requirePkce',
}

/**
 * The app settings that the options give. An empty value clears a setting: `--audience ""`.
 *
 * @throws UsageError
 */
export function settingsOf({
  options,
  repeated,
}: Pick<CommandContext, 'options' | 'repeated'>): Partial<AppSettings> {
  const settings: Record<string, unknown> = {}
  if (options.name !== undefined) settings.name = options.name
  for (const [option, setting] of Object.entries(SETTING_OF_OPTION)) {
    const value = repeated[option] ?? options[option]
    if (value !== undefined) settings[setting] = settingValue(option, setting, value)
  }
  return settings
}

/** The setting's value from that of an option: an empty one gives the setting's default, or is left out of a list. */
function settingValue(
  option: string,
  setting: OptionSettings[keyof OptionSettings],
  value: unknown,
): unknown {
  if (Array.isArray(value)) return value.filter(each => each !== '')
  if (value === '') return DEFAULT_APP_SETTINGS[setting]
  if ((setting === 'tokenAlg' || setting === 'idTokenAlg') && !isSigningAlg(String(value)))
    throw new UsageError(`--${option} must be one of ${SIGNING_ALGS.join(', ')}.`)
  return value
}
