/** Texts about apps that people sign in to with their account here. */
export const appTexts = {
  signInTo: (app: string) => `to continue to ${app}`,
  consent: {
    title: 'Allow access',
    heading: (app: string) => `${app} asks for access to your account`,
    signedInAs: 'You are signed in as',
    other: 'Use another account',
    list: (app: string) => `${app} will be able to:`,
    goesTo: 'Then you go on to',
    later: 'You can withdraw this at any time on your account page.',
    allow: 'Allow',
    deny: 'Do not allow',
  },
  scopes: {
    openid: 'know that it is you, by the id of your account',
    profile: 'see your name',
    email: 'see your e-mail address',
    offline_access: 'keep this access while you are away, until you end it',
    'agent:connect': 'connect agents to the hub as you',
    'agents:send': 'send messages to your connected agents',
    'agents:read': 'list and watch your connected agents',
    'account:read': 'see your profile, balance and ledger',
    'account:write': 'change your name, and withdraw what you allowed apps',
    'keys:read': 'list your keys and when they were used',
    'keys:write': 'rename and revoke your keys',
    'events:read': 'see the security events of your account',
  } as Readonly<Record<string, string>>,
  ownScope: (scope: string) => `use "${scope}" in services that know it`,
  account: {
    title: 'Apps with access',
    lead: 'Apps that you allowed to use your account. Withdrawing ends what they have at once.',
    since: 'since',
    withdraw: 'Withdraw',
  },
  logout: {
    title: 'Sign out',
    lead: (app: string | null) =>
      app === null ? 'Do you want to sign out?' : `${app} asks you to sign out.`,
    explained: 'You are signed out here and in the apps that you signed in to from this browser.',
    confirm: 'Sign out',
    stay: 'Stay signed in',
    unusable: 'Back to the app',
    unusableLead: 'The app asked to be shown next, but this is not an address that is registered for it.',
  },
  unusable: {
    title: 'This sign-in cannot go on',
    lead: 'The app that sent you here made a request that cannot be answered. Go back to it and try again; if that does not help, tell the people who run it this:',
  },
  gone: {
    title: 'Nothing waits here',
    lead: 'This sign-in was finished already, took too long, or began in another browser. Go back to the app and start again.',
  },
}
