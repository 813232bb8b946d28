import type { docsTexts as english } from '../en/docs.ts'
import type { Translation } from '../text.ts'

export const docsTexts = {
  docs: {
    title: 'Documentazione',
    menu: 'Indice',
    guides: 'Guide',
    reference: 'Riferimento API',
    operators: 'Per i gestori',
    onThisPage: 'In questa pagina',
    search: 'Cerca',
    searchFor: 'Cerca nella documentazione',
    found: {
      one: '{count} risultato per «{query}»',
      many: '{count} di risultati per «{query}»',
      other: '{count} risultati per «{query}»',
    },
    notFound: 'Nessun risultato per «{query}»',
    notFoundLead: 'Prova con meno parole, o con altre.',
    languages: 'Linguaggio dell’esempio',
    path: 'Percorso',
    query: 'Parametri della query',
    headers: 'Intestazioni',
    body: 'Corpo',
    required: 'obbligatorio',
    example: 'Esempio',
    answers: 'Risposte',
    errors: 'Errori',
    code: 'Codice',
    status: 'Stato',
    meaning: 'Significato',
    whatToDo: 'Che cosa fare',
    tryIt: 'Prova',
    tryLead:
      'Il servizio esegue questa chiamata a tuo nome, con i tuoi diritti e limiti. Ciò che cambia resta cambiato davvero.',
    trySignIn: 'Accedi per eseguire qui questa chiamata.',
    send: 'Invia',
    answer: 'Risposta {status}',
    answerCut: 'Il resto della risposta non viene mostrato.',
  },
} as const satisfies Translation<typeof english, 'it'>
