import type { docsTexts as english } from '../en/docs.ts'
import type { Translation } from '../text.ts'

/** The texts around the documentation, which itself is in English. */
export const docsTexts = {
  docs: {
    title: 'Documentatie',
    menu: 'Inhoud',
    guides: 'Handleidingen',
    reference: 'API-referentie',
    operators: 'Voor beheerders',
    onThisPage: 'Op deze pagina',
    search: 'Zoeken',
    searchFor: 'Zoeken in de documentatie',
    found: { one: '{count} resultaat voor ‘{query}’', other: '{count} resultaten voor ‘{query}’' },
    notFound: 'Niets gevonden voor ‘{query}’',
    notFoundLead: 'Probeer minder of andere woorden.',
    languages: 'Taal van het voorbeeld',
    path: 'Pad',
    query: 'Query',
    headers: 'Headers',
    body: 'Body',
    required: 'verplicht',
    example: 'Voorbeeld',
    answers: 'Antwoorden',
    errors: 'Fouten',
    code: 'Code',
    status: 'Status',
    meaning: 'Betekenis',
    whatToDo: 'Wat je kunt doen',
    tryIt: 'Uitproberen',
    tryLead:
      'De dienst doet deze aanroep namens jou, met jouw rechten en limieten. Wat de aanroep wijzigt, is echt gewijzigd.',
    trySignIn: 'Log in om deze aanroep hier te doen.',
    send: 'Versturen',
    answer: 'Antwoord {status}',
    answerCut: 'De rest van het antwoord wordt niet getoond.',
  },
} as const satisfies Translation<typeof english, 'nl'>
