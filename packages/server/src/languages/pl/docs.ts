import type { docsTexts as english } from '../en/docs.ts'
import type { Translation } from '../text.ts'

/** The texts around the documentation, which itself is in English. */
export const docsTexts = {
  docs: {
    title: 'Dokumentacja',
    menu: 'Spis treści',
    guides: 'Przewodniki',
    reference: 'Dokumentacja API',
    operators: 'Dla operatorów',
    onThisPage: 'Na tej stronie',
    search: 'Szukaj',
    searchFor: 'Przeszukaj dokumentację',
    found: {
      one: '{count} wynik dla „{query}”',
      few: '{count} wyniki dla „{query}”',
      many: '{count} wyników dla „{query}”',
      other: '{count} wyniku dla „{query}”',
    },
    notFound: 'Nic nie znaleziono dla „{query}”',
    notFoundLead: 'Spróbuj użyć mniej słów albo innych.',
    languages: 'Język przykładu',
    path: 'Ścieżka',
    query: 'Zapytanie',
    headers: 'Nagłówki',
    body: 'Treść',
    required: 'wymagane',
    example: 'Przykład',
    answers: 'Odpowiedzi',
    errors: 'Błędy',
    code: 'Kod',
    status: 'Status',
    meaning: 'Znaczenie',
    whatToDo: 'Co zrobić',
    tryIt: 'Wypróbuj',
    tryLead:
      'Usługa wykona to wywołanie w twoim imieniu, z twoimi uprawnieniami i limitami. Wprowadzone zmiany są trwałe.',
    trySignIn: 'Zaloguj się, aby wykonać to wywołanie tutaj.',
    send: 'Wyślij',
    answer: 'Odpowiedź {status}',
    answerCut: 'Reszta odpowiedzi nie jest pokazana.',
  },
} as const satisfies Translation<typeof english, 'pl'>
