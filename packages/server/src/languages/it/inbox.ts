import type { inboxTexts as english } from '../en/inbox.ts'
import type { Translation } from '../text.ts'

export const inboxTexts = {
  inbox: {
    title: 'Posta locale',
    lead: 'Nessun server di posta è configurato, quindi le e-mail restano su questa macchina per un giorno.',
    empty: 'Ancora nessuna e-mail',
    emptyLead: 'Chiedi un link per accedere: arriva qui da solo.',
    arrived: 'Sono arrivate nuove e-mail.',
    search: 'Cerca',
    searchExample: 'Indirizzo, oggetto o testo',
    notFound: 'Nessuna e-mail corrisponde alla ricerca',
    hidden: {
      one: '{count} e-mail meno recente non viene mostrata; una ricerca la trova.',
      many: '{count} di e-mail meno recenti non vengono mostrate; una ricerca le trova.',
      other: '{count} e-mail meno recenti non vengono mostrate; una ricerca le trova.',
    },
    open: 'Apri il link',
    copyCode: 'Copia il codice',
    spent: 'Usato o scaduto',
    view: 'Visualizzazione',
    html: 'HTML',
    text: 'Testo',
    source: 'Sorgente',
    noSource: 'Questa e-mail è stata conservata da una versione precedente, senza il sorgente.',
    back: 'Tutte le e-mail',
    to: 'A',
  },
} as const satisfies Translation<typeof english, 'it'>
