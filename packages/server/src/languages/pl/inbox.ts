import type { inboxTexts as english } from '../en/inbox.ts'
import type { Translation } from '../text.ts'

export const inboxTexts = {
  inbox: {
    title: 'Lokalna skrzynka',
    lead: 'Serwer poczty nie jest skonfigurowany, więc wiadomości pozostają na tej maszynie przez jeden dzień.',
    empty: 'Nie ma jeszcze wiadomości',
    emptyLead: 'Poproś o link do logowania: pojawi się tu sam.',
    arrived: 'Przyszła nowa wiadomość.',
    search: 'Szukaj',
    searchExample: 'Adres, temat lub treść',
    notFound: 'Żadna wiadomość tego nie zawiera',
    hidden: {
      one: 'Nie pokazano {count} starszej wiadomości; można ją wyszukać.',
      few: 'Nie pokazano {count} starszych wiadomości; można je wyszukać.',
      many: 'Nie pokazano {count} starszych wiadomości; można je wyszukać.',
      other: 'Nie pokazano {count} starszej wiadomości; można je wyszukać.',
    },
    open: 'Otwórz link',
    copyCode: 'Kopiuj kod',
    spent: 'Użyty lub wygasł',
    view: 'Widok',
    html: 'HTML',
    text: 'Tekst',
    source: 'Źródło',
    noSource: 'Tę wiadomość zapisała wcześniejsza wersja, bez źródła.',
    back: 'Wszystkie wiadomości',
    to: 'Do',
  },
} as const satisfies Translation<typeof english, 'pl'>
