import type { listsTexts as english } from '../en/lists.ts'
import type { Translation } from '../text.ts'

export const listsTexts = {
  keyList: {
    search: 'Zoeken',
    searchExample: 'Naam, begin van de sleutel of ID',
    sort: 'Sorteren op',
    sorts: {
      created: 'Nieuwste eerst',
      name: 'Naam',
      used: 'Laatst gebruikt eerst',
      expires: 'Verloopt het eerst',
    },
    none: 'Geen sleutel bevat dat.',
    found: { one: '{count} sleutel', other: '{count} sleutels' },
    window: 'Alleen in de {count} nieuwste sleutels.',
    windowOlder: 'Zoeken in oudere sleutels',
    next: 'Volgende pagina',
    previous: 'Vorige pagina',
    select: '{name} selecteren',
    selectAll: 'Alles op deze pagina selecteren',
    selected: 'Geselecteerd: {count}',
    revoke: 'Geselecteerde sleutels intrekken',
    revokeTitle: { one: '{count} sleutel intrekken?', other: '{count} sleutels intrekken?' },
    revokeNow: { one: 'Deze sleutel intrekken', other: 'Deze {count} sleutels intrekken' },
    noneSelected: 'Selecteer minstens één actieve sleutel.',
  },
  eventList: {
    lead: 'Wat er in je account is gebeurd. Wordt {days} dagen bewaard.',
    all: 'Alle gebeurtenissen',
    filter: 'Filteren op onderwerp',
    groups: {
      sign_ins: 'Inloggen',
      keys: 'Sleutels',
      account: 'Account',
      apps: 'Apps',
      support: 'Support',
    },
    ofKey: 'Alleen van de sleutel {name}.',
    everyKey: 'Die van alle sleutels tonen',
    empty: 'Geen gebeurtenissen van dit soort.',
    newest: 'Nieuwste gebeurtenissen',
    older: 'Oudere gebeurtenissen',
    export: 'Deze allemaal als bestand:',
    session: 'Sessie: {client}',
    pages: 'Meer gebeurtenissen',
  },
} as const satisfies Translation<typeof english, 'nl'>
