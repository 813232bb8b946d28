import type { listsTexts as english } from '../en/lists.ts'
import type { Translation } from '../text.ts'

export const listsTexts = {
  keyList: {
    search: 'Szukaj',
    searchExample: 'Nazwa, początek klucza lub identyfikator',
    sort: 'Sortuj według',
    sorts: {
      created: 'Najnowsze',
      name: 'Nazwa',
      used: 'Ostatnio używane',
      expires: 'Najbliższe wygaśnięcie',
    },
    none: 'Żaden klucz tego nie zawiera.',
    found: { one: '{count} klucz', few: '{count} klucze', many: '{count} kluczy', other: '{count} klucza' },
    window: 'Tylko spośród {count} najnowszych kluczy.',
    windowOlder: 'Szukaj w starszych kluczach',
    next: 'Następna strona',
    previous: 'Poprzednia strona',
    select: 'Zaznacz {name}',
    selectAll: 'Zaznacz wszystkie na tej stronie',
    selected: 'Zaznaczone: {count}',
    revoke: 'Unieważnij zaznaczone klucze',
    revokeTitle: {
      one: 'Unieważnić {count} klucz?',
      few: 'Unieważnić {count} klucze?',
      many: 'Unieważnić {count} kluczy?',
      other: 'Unieważnić {count} klucza?',
    },
    revokeNow: {
      one: 'Unieważnij ten klucz',
      few: 'Unieważnij te {count} klucze',
      many: 'Unieważnij te {count} kluczy',
      other: 'Unieważnij te {count} klucza',
    },
    noneSelected: 'Zaznacz co najmniej jeden aktywny klucz.',
  },
  eventList: {
    lead: 'Co się działo na twoim koncie w ciągu ostatnich {days} dni.',
    all: 'Wszystkie zdarzenia',
    filter: 'Filtruj według tematu',
    groups: { sign_ins: 'Logowania', keys: 'Klucze', account: 'Konto', apps: 'Aplikacje', support: 'Pomoc' },
    ofKey: 'Tylko zdarzenia klucza {name}.',
    everyKey: 'Pokaż zdarzenia wszystkich kluczy',
    empty: 'Brak zdarzeń tego rodzaju.',
    newest: 'Najnowsze zdarzenia',
    older: 'Starsze zdarzenia',
    export: 'Wszystkie te zdarzenia w pliku:',
    session: 'Sesja: {client}',
    byOperator: 'przez operatora',
    pages: 'Więcej zdarzeń',
  },
} as const satisfies Translation<typeof english, 'pl'>
