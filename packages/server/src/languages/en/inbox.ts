/** The texts of the local inbox. */
export const inboxTexts = {
  inbox: {
    title: 'Local inbox',
    lead: 'No mail server is set up, so mail stays on this machine, for a day.',
    empty: 'No mail yet',
    emptyLead: 'Ask for a sign-in link: it arrives here by itself.',
    arrived: 'New mail has arrived.',
    search: 'Search',
    searchExample: 'Address, subject or text',
    notFound: 'No mail contains that',
    hidden: {
      one: '{count} older mail is not shown; a search finds it.',
      other: '{count} older mails are not shown; a search finds them.',
    },
    open: 'Open link',
    copyCode: 'Copy code',
    spent: 'Used or expired',
    view: 'View',
    html: 'HTML',
    text: 'Text',
    source: 'Source',
    noSource: 'This mail was kept by an earlier version, without its source.',
    back: 'All mail',
    to: 'To',
  },
} as const
