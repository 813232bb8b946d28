import type { docsTexts as english } from '../en/docs.ts'
import type { Translation } from '../text.ts'

export const docsTexts = {
  docs: {
    title: 'Documentation',
    menu: 'Sommaire',
    guides: 'Guides',
    reference: 'Référence de l’API',
    operators: 'Pour les exploitants',
    onThisPage: 'Sur cette page',
    search: 'Rechercher',
    searchFor: 'Rechercher dans la documentation',
    found: {
      one: '{count} résultat pour « {query} »',
      many: '{count} de résultats pour « {query} »',
      other: '{count} résultats pour « {query} »',
    },
    notFound: 'Aucun résultat pour « {query} »',
    notFoundLead: 'Essayez avec moins de mots, ou d’autres.',
    languages: 'Langage de l’exemple',
    path: 'Chemin',
    query: 'Paramètres d’URL',
    headers: 'En-têtes',
    body: 'Corps',
    required: 'obligatoire',
    example: 'Exemple',
    answers: 'Réponses',
    errors: 'Erreurs',
    code: 'Code',
    status: 'Statut',
    meaning: 'Signification',
    whatToDo: 'Que faire',
    tryIt: 'Essayer',
    tryLead:
      'Le service exécute cet appel en votre nom, avec vos droits et vos limites. Ce qu’il modifie est réellement modifié.',
    trySignIn: 'Connectez-vous pour exécuter cet appel ici.',
    send: 'Envoyer',
    answer: 'Réponse {status}',
    answerCut: 'La suite de la réponse n’est pas affichée.',
  },
} as const satisfies Translation<typeof english, 'fr'>
