import type { deviceTexts as english } from '../en/device.ts'
import type { Translation } from '../text.ts'

export const deviceTexts = {
  device: {
    title: 'Połącz urządzenie',
    typeLead: 'Wpisz kod, który pokazuje twoje urządzenie lub terminal.',
    code: 'Kod na urządzeniu',
    codeHint: '8 liter, na przykład WDJB-MJHT. Wielkie lub małe, z łącznikiem lub bez.',
    next: 'Dalej',
    unknownCode:
      'Żadne urządzenie nie pokazuje teraz tego kodu. Sprawdź litery; kod jest ważny 10 minut i działa raz.',
    codesRefused:
      'Wpisano zbyt wiele błędnych kodów, więc na razie żadnego nie sprawdzamy. Otwórz link, który pokazuje urządzenie: nadal działa.',
    gone: 'Ta prośba jest już nieaktualna',
    goneLead: 'Zapadła już decyzja albo minęło 10 minut. Zacznij od nowa na urządzeniu.',
    signInAgain:
      'Aby zatwierdzić urządzenie, zaloguj się ponownie: od ostatniego logowania minęło ponad 30 minut.',
    asks: '{client} prosi o dostęp do twojego konta',
    who: 'Program',
    device: 'Urządzenie',
    claimed: '„{name}” – tak się przedstawia',
    unnamed: 'Nie podało nazwy',
    from: 'Skąd',
    sameNetwork: 'to także twoja sieć',
    otherNetwork: 'to nie jest twoja sieć',
    asked: 'Kiedy',
    account: 'Twoje konto',
    codeNow: 'Kod urządzenia',
    mayTitle: 'Jeśli zatwierdzisz, otrzyma',
    key: 'Jeden klucz API, który wygaśnie w ciągu 90 dni i pozwala:',
    access: 'Dostęp do twojego konta, dopóki go nie zakończysz, aby:',
    ownScope: 'uprawnienie innej usługi',
    compared: 'To ja rozpoczynam to połączenie, a urządzenie przede mną pokazuje dokładnie ten kod.',
    comparedMissing: 'Porównaj kod z tym na urządzeniu i zaznacz pole, jeśli są takie same.',
    warning: 'Ktoś przysłał ci ten link lub kod? Odrzuć: zatwierdzenie oddałoby tej osobie twoje konto.',
    approve: 'Zatwierdź',
    deny: 'Odrzuć',
    approved: 'Urządzenie jest połączone',
    approvedLead:
      'Wróć do niego: będzie działać dalej samo. Jego klucz jest wśród twoich kluczy API albo jego sesja wśród twoich sesji: tam możesz zakończyć dostęp.',
    denied: 'Urządzenie zostało odrzucone',
    deniedLead: 'Nie dostanie niczego. Jeśli ktoś przysłał ci ten link, powiadom operatora.',
    keys: 'Zobacz swoje klucze',
  },
} as const satisfies Translation<typeof english, 'pl'>
