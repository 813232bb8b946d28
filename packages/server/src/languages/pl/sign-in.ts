import type { signInTexts as english } from '../en/sign-in.ts'
import type { Translation } from '../text.ts'

export const signInTexts = {
  signIn: {
    title: 'Logowanie',
    heading: 'Zaloguj się do {product}',
    lead: 'Wyślemy ci e-mailem link, którym się zalogujesz. Hasło nie jest potrzebne.',
    newHere: {
      open: 'Pierwszy raz tutaj? Ten sam link założy ci konto.',
      openWithCredit: 'Pierwszy raz tutaj? Ten sam link założy ci konto, z kwotą {credit} na próbę.',
      domains: 'Pierwszy raz tutaj? Ten sam link założy ci konto, jeśli twój adres może je mieć.',
      invited: 'Pierwszy raz tutaj? Link dostają tylko osoby zaproszone.',
    },
    email: 'Adres e-mail',
    emailExample: 'ada@example.com',
    submit: 'Wyślij mi link',
    badEmail: 'To nie jest prawidłowy adres e-mail. Powinien wyglądać tak: ada@example.com.',
  },
  checkMail: {
    title: 'Sprawdź pocztę',
    lead: 'Na adres {email} wysyłamy link i kod. Otwórz link w tej przeglądarce albo przeczytaj wiadomość gdziekolwiek i wpisz tutaj kod. Link i kod działają raz, przez 5 minut.',
    code: 'Kod z wiadomości',
    codeHint: '8 cyfr',
    submit: 'Zaloguj się kodem',
    badCode: 'Ten kod jest nieprawidłowy. Sprawdź go, użyj przycisku z wiadomości albo poproś o nowy.',
    codesRefused:
      'Wpisano zbyt wiele błędnych kodów, więc na razie nie przyjmujemy żadnego. Użyj przycisku z wiadomości: nadal działa.',
    expired: 'Ten kod wygasł. Poproś o nowy.',
    used: 'Ten kod lub późniejszy został już użyty. Poproś o nowy.',
    resend: 'Wyślij ponownie',
    wait: 'Ponowna wysyłka możliwa za {time}.',
    limited: 'Wysłano zbyt wiele wiadomości.',
    noNewMail:
      'Nie wysłano nowej wiadomości: było ich już zbyt wiele. Ostatni link i kod działają, dopóki nie wygasną.',
    limitIs: 'Jeśli programujesz na tej instalacji: ustawienie {setting} podnosi limit.',
    wrongAddress: 'Zły adres?',
    inbox: 'Otwórz lokalną skrzynkę',
    inboxElsewhere:
      'Serwer poczty nie jest skonfigurowany, więc wiadomości pozostają na maszynie, na której działa ta usługa. Tam pokaże je polecenie:',
  },
  verify: {
    title: 'Logowanie',
    signingIn: 'Trwa logowanie…',
    lead: 'Kontynuuj jako {email}',
    submit: 'Zaloguj się',
    notYou: 'Jeśli to nie twoja prośba, zamknij stronę: bez przycisku nic się nie stanie.',
    other: 'Obecne konto: {email}. Zalogowanie się tutaj zakończy tamtą sesję.',
    used: 'Ten link został już użyty',
    usedLead:
      'Każdy link działa raz, a użycie jednego unieważnia pozostałe. Jeśli to nie ty, ktoś inny może czytać twoją pocztę.',
    expired: 'Ten link wygasł',
    expiredLead: 'Link działa 5 minut. Oto jak dostać nowy:',
    invalid: 'Ten link nie działa',
    invalidLead:
      'Może jest ucięty albo utworzony dla innego adresu. Skopiuj z wiadomości cały link albo poproś o nowy.',
    fresh: 'Wyślij mi nowy link',
    notOpen: 'Brak konta dla tego adresu',
    notOpenLead:
      'Rejestracja z tym adresem nie jest możliwa. Jeśli uważasz, że to pomyłka, napisz na {support}.',
    suspended: 'To konto jest zablokowane',
    suspendedLead:
      'Zablokował je operator usługi {product}: nikt nie może się na nie zalogować, a jego klucze nie działają. Nic nie zostało usunięte.',
    suspendedSubject: 'Zablokowane konto {email}',
    askSupport: 'Zapytaj o powód: {support}',
  },
} as const satisfies Translation<typeof english, 'pl'>
