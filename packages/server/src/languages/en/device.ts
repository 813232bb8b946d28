/** The texts about the approval of devices that request access (RFC 8628). */
export const deviceTexts = {
  device: {
    title: 'Connect a device',
    typeLead: 'Type the code that your device or terminal shows.',
    code: 'Code on the device',
    codeHint: '8 letters, like WDJB-MJHT. Upper or lower case, with or without the dash.',
    next: 'Continue',
    unknownCode:
      'No device shows this code now. Check the letters; a code is valid for 10 minutes, and works once.',
    codesRefused:
      'Too many wrong codes were typed, so none is checked for now. Open the link that your device shows: it works.',
    gone: 'This request is over',
    goneLead: 'It was decided already, or its 10 minutes have passed. Start again on the device.',
    signInAgain: 'To approve a device, sign in again: your last sign-in is more than 30 minutes ago.',
    asks: '{client} asks for access to your account',
    who: 'Program',
    device: 'Device',
    claimed: '“{name}”, as it calls itself',
    unnamed: 'It gave no name',
    from: 'Asks from',
    sameNetwork: 'the network that you are in, too',
    otherNetwork: 'not the network that you are in',
    asked: 'Asked',
    account: 'Your account',
    codeNow: 'Its code',
    mayTitle: 'If you approve, it gets',
    key: 'One API key that expires within 90 days, and may:',
    access: 'Access to your account, until you end it, to:',
    ownScope: 'a permission of another service here',
    compared: 'I started this myself, and the device in front of me shows exactly this code.',
    comparedMissing: 'Compare the code with the one on your device, and tick the box if it is the same.',
    warning:
      'Did somebody send you this link or this code? Then deny: approving would give your account to them.',
    approve: 'Approve',
    deny: 'Deny',
    approved: 'The device is connected',
    approvedLead:
      'Go back to it: it continues by itself. Its key is among your API keys, or its session among your sessions: there you can end it.',
    denied: 'The device was denied',
    deniedLead: 'It gets nothing. If somebody sent you the link, tell your operator.',
    keys: 'View your keys',
  },
} as const
