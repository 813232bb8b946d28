import type { docsTexts as english } from '../en/docs.ts'
import type { Translation } from '../text.ts'

/** The texts around the documentation, which itself is in English. */
export const docsTexts = {
  docs: {
    title: 'Dokumentation',
    menu: 'Inhalt',
    guides: 'Anleitungen',
    reference: 'API-Referenz',
    operators: 'Für Betreiber',
    onThisPage: 'Auf dieser Seite',
    search: 'Suchen',
    searchFor: 'Dokumentation durchsuchen',
    found: { one: '{count} Treffer für „{query}“', other: '{count} Treffer für „{query}“' },
    notFound: 'Zu „{query}“ wurde nichts gefunden',
    notFoundLead: 'Versuchen Sie es mit weniger oder anderen Wörtern.',
    languages: 'Sprache des Beispiels',
    path: 'Pfad',
    query: 'Abfrage',
    headers: 'Kopfzeilen',
    body: 'Inhalt der Anfrage',
    required: 'nötig',
    example: 'Beispiel',
    answers: 'Antworten',
    errors: 'Fehler',
    code: 'Code',
    status: 'Status',
    meaning: 'Bedeutung',
    whatToDo: 'Was zu tun ist',
    tryIt: 'Ausprobieren',
    tryLead:
      'Der Dienst führt diesen Aufruf für Sie aus, mit Ihren Rechten und Grenzen. Was er ändert, ist geändert.',
    trySignIn: 'Melden Sie sich an, um den Aufruf hier auszuführen.',
    send: 'Senden',
    answer: 'Antwort {status}',
    answerCut: 'Der Rest der Antwort wird nicht gezeigt.',
  },
} as const satisfies Translation<typeof english, 'de'>
