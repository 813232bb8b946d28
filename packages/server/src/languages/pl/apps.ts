import type { appsTexts as english } from '../en/apps.ts'
import type { Translation } from '../text.ts'

export const appsTexts = {
  apps: {
    signInTo: 'aby przejść do aplikacji {app}',
    consent: {
      title: 'Zgoda na dostęp',
      heading: '{app} prosi o dostęp do twojego konta',
      signedInAs: 'Zalogowano jako {email}.',
      other: 'Użyj innego konta',
      list: '{app} będzie mogła:',
      actsAt:
        'W usłudze {audience} będzie działać w twoim imieniu; o tym, co jej tam wolno, decyduje ta usługa.',
      unchecked: 'Nikt nie sprawdził, kto prowadzi tę aplikację: sama się tak opisała.',
      goesTo: 'Następnie przejdziesz do {host}.',
      later: 'Zgodę możesz cofnąć w każdej chwili na stronie swojego konta.',
      allow: 'Zezwól',
      deny: 'Nie zezwalaj',
    },
    scopes: {
      openid: 'rozpoznać cię po identyfikatorze konta',
      profile: 'zobaczyć twoje imię',
      email: 'zobaczyć twój adres e-mail',
      offline_access: 'zachować ten dostęp pod twoją nieobecność, dopóki go nie zakończysz',
      'agent:connect': 'łączyć agentów z hubem w twoim imieniu',
      'agents:send': 'wysyłać wiadomości do twoich połączonych agentów',
      'agents:read': 'przeglądać i obserwować twoich połączonych agentów',
      'account:read': 'zobaczyć twój profil, saldo i historię operacji',
      'account:write': 'zmieniać twoje imię i cofać zgody udzielone aplikacjom',
      'keys:read': 'przeglądać twoje klucze i to, kiedy były używane',
      'keys:write': 'zmieniać nazwy twoich kluczy, unieważniać je oraz zawężać ich sieci i limity',
      'events:read': 'zobaczyć zdarzenia bezpieczeństwa twojego konta',
    },
    ownScope: 'używać „{scope}” w usługach, które to znają',
    account: {
      title: 'Aplikacje z dostępem',
      lead: 'Aplikacje, którym zezwolono na korzystanie z twojego konta. Cofnięcie zgody od razu odbiera im dostęp.',
      since: 'od',
      withdraw: 'Cofnij zgodę',
    },
    logout: {
      title: 'Wylogowanie',
      lead: 'Czy chcesz się wylogować?',
      leadOfApp: '{app} prosi o wylogowanie.',
      explained: 'Wylogujesz się tutaj oraz w aplikacjach, do których zalogowano się z tej przeglądarki.',
      confirm: 'Wyloguj się',
      stay: 'Nie wylogowuj',
      unusable: 'Powrót do aplikacji',
      unusableLead: 'Aplikacja poprosiła o przejście pod adres, który nie jest dla niej zarejestrowany.',
    },
    unusable: {
      title: 'Tego logowania nie można kontynuować',
      lead: 'Aplikacja, która cię tu skierowała, wysłała żądanie, na które nie można odpowiedzieć. Wróć do niej i spróbuj ponownie; jeśli to nie pomoże, przekaż jej twórcom tę informację:',
    },
    gone: {
      title: 'Nic tu nie czeka',
      lead: 'To logowanie zostało już zakończone, trwało zbyt długo albo zaczęło się w innej przeglądarce. Wróć do aplikacji i zacznij od nowa.',
    },
  },
} as const satisfies Translation<typeof english, 'pl'>
