import type { inboxTexts as english } from '../en/inbox.ts'
import type { Translation } from '../text.ts'

export const inboxTexts = {
  inbox: {
    title: 'Lokale inbox',
    lead: 'Er is geen mailserver ingesteld, dus mails blijven een dag op deze machine staan.',
    empty: 'Nog geen mail',
    emptyLead: 'Vraag een inloglink aan: die komt hier vanzelf binnen.',
    arrived: 'Er is nieuwe mail.',
    search: 'Zoeken',
    searchExample: 'Adres, onderwerp of tekst',
    notFound: 'Geen mail bevat dat',
    hidden: {
      one: '{count} oudere mail wordt niet getoond; met zoeken vind je hem.',
      other: '{count} oudere mails worden niet getoond; met zoeken vind je ze.',
    },
    open: 'Link openen',
    copyCode: 'Code kopiëren',
    spent: 'Gebruikt of verlopen',
    view: 'Weergave',
    html: 'HTML',
    text: 'Tekst',
    source: 'Bron',
    noSource: 'Deze mail is bewaard door een eerdere versie, zonder de bron.',
    back: 'Alle mails',
    to: 'Aan',
  },
} as const satisfies Translation<typeof english, 'nl'>
