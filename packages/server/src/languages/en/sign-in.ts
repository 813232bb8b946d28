export const signInTexts = {
  signIn: {
    title: 'Sign in',
    heading: 'Sign in to {product}',
    lead: 'We mail you a link that signs you in. There is no password.',
    newHere: {
      open: 'New here? The same link makes your account.',
      openWithCredit: 'New here? The same link makes your account, with {credit} to try things out.',
      domains: 'New here? The same link makes your account, if your address may have one.',
      invited: 'New here? Only who was invited gets a link.',
    },
    email: 'E-mail address',
    emailExample: 'ada@example.com',
    submit: 'Send me a link',
    badEmail: 'That is not one plain e-mail address. It should look like ada@example.com.',
  },
  checkMail: {
    title: 'Check your mail',
    lead: 'A link and a code are on their way to {email}. Open the link in this browser, or read the mail anywhere and type its code here. Both work once, within 5 minutes.',
    code: 'Code from the mail',
    codeHint: '8 digits',
    submit: 'Sign in with the code',
    badCode: 'That code is not right. Check it, use the button in the mail, or send a new one.',
    codesRefused:
      'Too many wrong codes were typed, so no code is accepted for now. Use the button in the mail: it works.',
    expired: 'That code has expired. Send a new one.',
    used: 'That code was used already, or another one after it. Send a new one.',
    resend: 'Send again',
    wait: 'You can send again in {time}.',
    limited: 'Too many mails were sent.',
    noNewMail:
      'No new mail was sent: there were too many. The last link and code still work until they expire.',
    limitIs: 'If you develop with this installation: the setting {setting} raises the limit.',
    wrongAddress: 'Wrong address?',
    inbox: 'Open the local inbox',
    inboxElsewhere:
      'No mail server is set up, so mail stays on the machine that runs this service. There, this shows it:',
  },
  verify: {
    title: 'Sign in',
    signingIn: 'Signing you in…',
    lead: 'Continue as {email}',
    submit: 'Sign in',
    notYou: 'If you did not ask for this, close the page: nothing happens without the button.',
    other: 'You are signed in as {email} now. Signing in here ends that.',
    used: 'This link was used already',
    usedLead:
      'Each link works once, and using one ends the others. If it was not you, somebody else can read your mail.',
    expired: 'This link has expired',
    expiredLead: 'A link works for 5 minutes. Here is how to get a fresh one:',
    invalid: 'This link does not work',
    invalidLead:
      'It may be cut off, or made for another address. Copy the whole link from the mail, or get a new one.',
    fresh: 'Send me a new link',
    notOpen: 'No account for this address',
    notOpenLead: 'Sign-up is not open to it. If you should have an account, write to {support}.',
    suspended: 'This account is suspended',
    suspendedLead:
      'The operator of {product} suspended it, so nobody can sign in to it, and its keys do not work. Nothing was deleted.',
    suspendedSubject: 'Suspended account {email}',
    askSupport: 'Ask {support} why',
  },
} as const
