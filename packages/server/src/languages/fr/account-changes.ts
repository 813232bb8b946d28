import type { accountChangesTexts as english } from '../en/account-changes.ts'
import type { Translation } from '../text.ts'

export const accountChangesTexts = {
  addressChange: {
    title: 'Changer d’adresse',
    label: 'Nouvelle adresse',
    submit: 'Changer d’adresse',
    hint: 'Un lien est envoyé aux deux adresses. Rien ne change tant que les deux n’ont pas confirmé.',
    pending: 'Le passage à {email} attend encore :',
    awaits: 'le lien de l’e-mail envoyé à {email}',
    until: 'La confirmation est possible jusqu’au {date}.',
    cancel: 'Annuler le changement',
    same: 'C’est déjà votre adresse.',
    otherDomain:
      'Les comptes de ce service ont une adresse de certains domaines seulement, et celle-ci n’en fait pas partie.',
    lead: 'L’adresse de votre compte, {from}, devient {to} dès que les deux l’ont confirmé. Toutes les autres sessions sont alors fermées ; les clés ne changent pas.',
    confirm: 'Confirmer',
    confirmed: 'C’est confirmé. Ouvrez maintenant le lien de l’e-mail envoyé à {email}.',
    invalid: 'Ce lien ne fonctionne pas',
    invalidLead:
      'Il a peut-être expiré, un plus récent l’a peut-être remplacé, ou il appartient à un autre compte que {email}. Rien n’a été modifié.',
    toAccount: 'Aller à votre compte',
  },
  deletion: {
    title: 'Supprimer le compte',
    lead: 'Au bout de {days} jours, pendant lesquels vous pouvez changer d’avis.',
    start: 'Supprimer mon compte',
    confirmTitle: 'Supprimer votre compte ?',
    wait: 'Jusqu’au {date}, tout continue, et vous pouvez conserver le compte.',
    afterwards:
      'Ensuite, ses clés et ses sessions prennent fin, ses agents sont déconnectés, et votre nom et votre adresse sont effacés.',
    ledger: 'Les mouvements sont conservés, sans votre nom. Le solde restant est perdu.',
    again: 'La même adresse peut se réinscrire, sans nouveau crédit d’essai.',
    hint: 'Pour tout arrêter immédiatement, révoquez d’abord vos clés.',
    submit: 'Supprimer mon compte le {date}',
    cancel: 'Le conserver',
    pending: 'Votre compte sera supprimé le {date}. Jusque-là, tout continue.',
    keep: 'Conserver mon compte',
    lastAdministrator: 'Vous êtes le dernier administrateur. Donnez d’abord ce rôle à quelqu’un d’autre.',
  },
  balanceHistory: {
    title: 'Solde des {days} derniers jours',
    summary: 'De {from} à {to}, entre {lowest} et {highest}.',
    change: 'De {from} à {to}.',
    same: '{balance} chaque jour.',
    columns: { day: 'Jour (UTC)', balance: 'Solde en fin de journée', change: 'Variation' },
  },
  accountMails: {
    look: 'Voir votre compte',
    network: 'Réseau',
    newAddress: 'Nouvelle adresse',
    expires: 'Le lien expire le {at} et fonctionne une seule fois.',
    deletionRequested: {
      subject: '{product} : votre compte sera supprimé le {at}',
      preheader: 'Jusque-là, vous pouvez le conserver.',
      heading: 'Votre compte va être supprimé',
      lead: 'Jusque-là, tout continue. Ensuite, ses clés et ses sessions prennent fin, et le nom et l’adresse sont effacés, sans retour possible. Pour conserver le compte, connectez-vous et utilisez le bouton sur la page de votre compte.',
      deleted: 'Suppression',
      asked: 'Demande',
      unknown:
        'Si ce n’était pas vous, conservez le compte, puis fermez les sessions et révoquez les clés qui ne sont pas les vôtres.',
    },
    oldAddress: {
      subject: '{product} : confirmez la nouvelle adresse de votre compte ({at})',
      preheader: 'Elle ne change qu’une fois confirmée par les deux adresses.',
      heading: 'Changer l’adresse de votre compte ?',
      lead: 'Une personne connectée à votre compte a demandé à en changer l’adresse. Le changement a lieu une fois que cette adresse et la nouvelle l’ont confirmé. Ouvrez le lien dans le navigateur où vous êtes connecté.',
      button: 'Confirmer le changement',
      unknown:
        'Si ce n’était pas vous, ne confirmez pas : rien ne change sans le lien. Fermez ensuite les sessions qui ne sont pas les vôtres.',
    },
    newAddressMail: {
      subject: '{product} : confirmez que cette adresse est la vôtre ({at})',
      preheader: 'Elle devient l’adresse d’un compte une fois que les deux adresses l’ont confirmé.',
      heading: 'Utiliser cette adresse pour votre compte ?',
      lead: 'Quelqu’un a demandé à utiliser cette adresse pour son compte {product}. Si c’était vous, confirmez-le dans le navigateur où vous êtes connecté. L’ancienne adresse doit le confirmer aussi.',
      button: 'Confirmer l’adresse',
      ignore: 'Si vous n’avez rien demandé, vous pouvez ignorer cet e-mail : rien ne se passe sans le lien.',
    },
    addressTaken: {
      subject: '{product} : cette adresse a déjà un compte ({at})',
      preheader: 'Quelqu’un a demandé à l’utiliser pour un autre compte. Rien n’a été modifié.',
      heading: 'Cette adresse a déjà un compte',
      lead: 'Quelqu’un a demandé à utiliser cette adresse pour un autre compte {product}. C’est impossible tant qu’elle a son propre compte. Rien n’a été modifié, et personne n’en a été informé.',
      ignore: 'Si c’était vous, supprimez d’abord l’un des deux comptes. Sinon, il n’y a rien à faire.',
    },
    addressChanged: {
      subject: 'Sécurité {product} : l’adresse de votre compte a été modifiée ({at})',
      preheader: 'Cette adresse ne permet plus de s’y connecter.',
      heading: 'L’adresse de votre compte a été modifiée',
      lead: 'Les deux adresses ont confirmé le changement. Celle-ci ne permet plus de se connecter au compte, et toutes les autres sessions ont été fermées. Les clés ne changent pas.',
      changed: 'Changement',
      unknown: 'Si ce n’était pas vous, écrivez immédiatement à l’adresse ci-dessous.',
    },
  },
} as const satisfies Translation<typeof english, 'fr'>
