import type { listsTexts as english } from '../en/lists.ts'
import type { Translation } from '../text.ts'

export const listsTexts = {
  keyList: {
    search: 'Cerca',
    searchExample: 'Nome, inizio della chiave o ID',
    sort: 'Ordina per',
    sorts: {
      created: 'Più recenti',
      name: 'Nome',
      used: 'Ultimo utilizzo',
      expires: 'Scadenza più vicina',
    },
    none: 'Nessuna chiave corrisponde alla ricerca.',
    found: { one: '{count} chiave', many: '{count} di chiavi', other: '{count} chiavi' },
    window: 'Solo tra le {count} chiavi più recenti.',
    windowOlder: 'Cerca tra le chiavi meno recenti',
    next: 'Pagina successiva',
    previous: 'Pagina precedente',
    range: '{from}–{to} di {total}',
    select: 'Seleziona {name}',
    selectAll: 'Seleziona tutte quelle di questa pagina',
    selected: 'Selezionate: {count}',
    revoke: 'Revoca le chiavi selezionate',
    revokeTitle: {
      one: 'Revocare {count} chiave?',
      many: 'Revocare {count} di chiavi?',
      other: 'Revocare {count} chiavi?',
    },
    revokeNow: {
      one: 'Revoca questa chiave',
      many: 'Revoca queste {count} di chiavi',
      other: 'Revoca queste {count} chiavi',
    },
    noneSelected: 'Seleziona almeno una chiave attiva.',
  },
  eventList: {
    lead: 'Che cosa è successo nel tuo account. Conservato per {days} giorni.',
    all: 'Tutti gli eventi',
    filter: 'Filtra per argomento',
    groups: {
      sign_ins: 'Accessi',
      keys: 'Chiavi',
      account: 'Account',
      apps: 'App',
      support: 'Assistenza',
    },
    ofKey: 'Solo quelli della chiave {name}.',
    everyKey: 'Mostra quelli di tutte le chiavi',
    empty: 'Nessun evento di questo tipo.',
    newest: 'Eventi più recenti',
    older: 'Eventi meno recenti',
    export: 'Tutti questi in un file:',
    session: 'Sessione: {client}',
    byOperator: 'dal gestore',
    pages: 'Altri eventi',
  },
} as const satisfies Translation<typeof english, 'it'>
