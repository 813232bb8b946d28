import type { inboxTexts as english } from '../en/inbox.ts'
import type { Translation } from '../text.ts'

export const inboxTexts = {
  inbox: {
    title: 'Lokaler Posteingang',
    lead: 'Es ist kein Mailserver eingerichtet, daher bleiben Mails einen Tag lang auf diesem Rechner.',
    empty: 'Noch keine Mail',
    emptyLead: 'Fordern Sie einen Anmeldelink an: Er erscheint hier von selbst.',
    arrived: 'Eine neue Mail ist angekommen.',
    search: 'Suchen',
    searchExample: 'Adresse, Betreff oder Text',
    notFound: 'Keine Mail enthält das',
    hidden: {
      one: '{count} ältere Mail wird nicht angezeigt; eine Suche findet sie.',
      other: '{count} ältere Mails werden nicht angezeigt; eine Suche findet sie.',
    },
    open: 'Link öffnen',
    copyCode: 'Code kopieren',
    spent: 'Benutzt oder abgelaufen',
    view: 'Ansicht',
    html: 'HTML',
    text: 'Text',
    source: 'Quelltext',
    noSource: 'Diese Mail wurde von einer früheren Version gespeichert, ohne ihren Quelltext.',
    back: 'Alle Mails',
    to: 'An',
  },
} as const satisfies Translation<typeof english, 'de'>
