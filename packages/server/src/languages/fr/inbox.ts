import type { inboxTexts as english } from '../en/inbox.ts'
import type { Translation } from '../text.ts'

export const inboxTexts = {
  inbox: {
    title: 'Boîte locale',
    lead: 'Aucun serveur de messagerie n’est configuré : les e-mails restent sur cette machine pendant un jour.',
    empty: 'Aucun e-mail pour le moment',
    emptyLead: 'Demandez un lien de connexion : il arrive ici automatiquement.',
    arrived: 'De nouveaux e-mails sont arrivés.',
    search: 'Rechercher',
    searchExample: 'Adresse, objet ou texte',
    notFound: 'Aucun e-mail ne correspond à cette recherche',
    hidden: {
      one: '{count} e-mail plus ancien n’est pas affiché ; une recherche le trouve.',
      many: '{count} d’e-mails plus anciens ne sont pas affichés ; une recherche les trouve.',
      other: '{count} e-mails plus anciens ne sont pas affichés ; une recherche les trouve.',
    },
    open: 'Ouvrir le lien',
    copyCode: 'Copier le code',
    spent: 'Utilisé ou expiré',
    view: 'Affichage',
    html: 'HTML',
    text: 'Texte',
    source: 'Source',
    noSource: 'Cet e-mail a été conservé par une version antérieure, sans sa source.',
    back: 'Tous les e-mails',
    to: 'À',
  },
} as const satisfies Translation<typeof english, 'fr'>
