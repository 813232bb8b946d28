import type { listsTexts as english } from '../en/lists.ts'
import type { Translation } from '../text.ts'

export const listsTexts = {
  keyList: {
    search: 'Rechercher',
    searchExample: 'Nom, début de la clé ou identifiant',
    sort: 'Trier par',
    sorts: {
      created: 'Plus récentes',
      name: 'Nom',
      used: 'Dernière utilisation',
      expires: 'Expiration la plus proche',
    },
    none: 'Aucune clé ne correspond à cette recherche.',
    found: { one: '{count} clé', many: '{count} de clés', other: '{count} clés' },
    window: 'Parmi les {count} clés les plus récentes seulement.',
    windowOlder: 'Chercher dans les clés plus anciennes',
    next: 'Page suivante',
    previous: 'Page précédente',
    range: '{from}–{to} sur {total}',
    select: 'Sélectionner {name}',
    selectAll: 'Tout sélectionner sur cette page',
    selected: 'Sélection : {count}',
    revoke: 'Révoquer les clés sélectionnées',
    revokeTitle: {
      one: 'Révoquer {count} clé ?',
      many: 'Révoquer {count} de clés ?',
      other: 'Révoquer {count} clés ?',
    },
    revokeNow: {
      one: 'Révoquer cette clé',
      many: 'Révoquer ces {count} de clés',
      other: 'Révoquer ces {count} clés',
    },
    noneSelected: 'Sélectionnez au moins une clé active.',
  },
  eventList: {
    lead: 'Ce qui s’est passé dans votre compte. Conservé pendant {days} jours.',
    all: 'Tous les événements',
    filter: 'Filtrer par sujet',
    groups: {
      sign_ins: 'Connexions',
      keys: 'Clés',
      account: 'Compte',
      apps: 'Applications',
      support: 'Assistance',
    },
    ofKey: 'Seulement ceux de la clé {name}.',
    everyKey: 'Afficher ceux de toutes les clés',
    empty: 'Aucun événement de ce type.',
    newest: 'Événements les plus récents',
    older: 'Événements plus anciens',
    export: 'Tous ces événements dans un fichier :',
    session: 'Session : {client}',
    byOperator: 'par l’exploitant',
    pages: 'Autres événements',
  },
} as const satisfies Translation<typeof english, 'fr'>
