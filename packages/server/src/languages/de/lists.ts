import type { listsTexts as english } from '../en/lists.ts'
import type { Translation } from '../text.ts'

export const listsTexts = {
  keyList: {
    search: 'Suchen',
    searchExample: 'Name, Anfang des Schlüssels oder ID',
    sort: 'Sortieren nach',
    sorts: {
      created: 'Neueste zuerst',
      name: 'Name',
      used: 'Zuletzt verwendete zuerst',
      expires: 'Zuerst ablaufende',
    },
    none: 'Kein Schlüssel enthält das.',
    found: { one: '{count} Schlüssel', other: '{count} Schlüssel' },
    window: 'Nur von den {count} neuesten Schlüsseln.',
    windowOlder: 'In älteren Schlüsseln suchen',
    next: 'Nächste Seite',
    previous: 'Vorige Seite',
    select: '{name} auswählen',
    selectAll: 'Alle auf dieser Seite auswählen',
    selected: 'Ausgewählt: {count}',
    revoke: 'Ausgewählte Schlüssel widerrufen',
    revokeTitle: { one: '{count} Schlüssel widerrufen?', other: '{count} Schlüssel widerrufen?' },
    revokeNow: { one: 'Diesen Schlüssel widerrufen', other: 'Diese {count} Schlüssel widerrufen' },
    noneSelected: 'Wählen Sie mindestens einen aktiven Schlüssel aus.',
  },
  eventList: {
    lead: 'Was in Ihrem Konto geschah. Wird {days} Tage aufbewahrt.',
    all: 'Alle Ereignisse',
    filter: 'Nach Thema filtern',
    groups: {
      sign_ins: 'Anmeldungen',
      keys: 'Schlüssel',
      account: 'Konto',
      apps: 'Apps',
      support: 'Support',
    },
    ofKey: 'Nur vom Schlüssel {name}.',
    everyKey: 'Die aller Schlüssel zeigen',
    empty: 'Kein Ereignis dieser Art.',
    newest: 'Neueste Ereignisse',
    older: 'Ältere Ereignisse',
    export: 'Alle diese als Datei:',
    session: 'Sitzung: {client}',
    pages: 'Weitere Ereignisse',
  },
} as const satisfies Translation<typeof english, 'de'>
