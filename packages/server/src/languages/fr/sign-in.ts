import type { signInTexts as english } from '../en/sign-in.ts'
import type { Translation } from '../text.ts'

export const signInTexts = {
  signIn: {
    title: 'Connexion',
    heading: 'Se connecter à {product}',
    lead: 'Nous vous envoyons un lien de connexion par e-mail. Il n’y a pas de mot de passe.',
    newHere: {
      open: 'Première visite ? Le même lien crée votre compte.',
      openWithCredit: 'Première visite ? Le même lien crée votre compte, avec {credit} pour essayer.',
      domains: 'Première visite ? Le même lien crée votre compte, si votre adresse y donne droit.',
      invited: 'Première visite ? Seules les personnes invitées reçoivent un lien.',
    },
    email: 'Adresse e-mail',
    emailExample: 'ada@example.com',
    submit: 'Recevoir un lien',
    badEmail: 'Ce n’est pas une adresse e-mail valide. Elle doit ressembler à ada@example.com.',
  },
  checkMail: {
    title: 'Consultez votre messagerie',
    lead: 'Un lien et un code sont en route vers {email}. Ouvrez le lien dans ce navigateur, ou lisez l’e-mail où vous voulez et saisissez le code ici. Ils fonctionnent une seule fois, pendant 5 minutes.',
    code: 'Code reçu par e-mail',
    codeHint: '8 chiffres',
    submit: 'Se connecter avec le code',
    badCode:
      'Ce code est incorrect. Vérifiez-le, utilisez le bouton de l’e-mail ou demandez un nouveau code.',
    codesRefused:
      'Trop de codes erronés ont été saisis : aucun code n’est accepté pour le moment. Le bouton de l’e-mail, lui, fonctionne.',
    expired: 'Ce code a expiré. Demandez-en un nouveau.',
    used: 'Ce code, ou un plus récent, a déjà été utilisé. Demandez-en un nouveau.',
    resend: 'Renvoyer',
    wait: 'Vous pourrez renvoyer l’e-mail dans {time}.',
    limited: 'Trop d’e-mails ont été envoyés.',
    noNewMail:
      'Aucun nouvel e-mail n’a été envoyé, car il y en a eu trop. Le dernier lien et le dernier code fonctionnent jusqu’à leur expiration.',
    limitIs: 'Si vous développez avec cette installation : le paramètre {setting} relève la limite.',
    wrongAddress: 'Mauvaise adresse ?',
    inbox: 'Ouvrir la boîte locale',
    inboxElsewhere:
      'Aucun serveur de messagerie n’est configuré : les e-mails restent sur la machine qui exécute ce service. Sur celle-ci, cette commande les affiche :',
  },
  verify: {
    title: 'Connexion',
    signingIn: 'Connexion en cours…',
    lead: 'Continuer en tant que {email}',
    submit: 'Se connecter',
    notYou: 'Si vous n’avez rien demandé, fermez la page : rien ne se passe sans le bouton.',
    other: 'Une session est déjà ouverte ici avec {email}. Si vous vous connectez, elle sera fermée.',
    used: 'Ce lien a déjà été utilisé',
    usedLead:
      'Chaque lien fonctionne une seule fois, et en utiliser un annule les autres. Si ce n’était pas vous, quelqu’un d’autre peut lire vos e-mails.',
    expired: 'Ce lien a expiré',
    expiredLead: 'Un lien est valable 5 minutes. Pour en recevoir un nouveau :',
    invalid: 'Ce lien ne fonctionne pas',
    invalidLead:
      'Il est peut-être tronqué, ou destiné à une autre adresse. Copiez le lien entier depuis l’e-mail, ou demandez-en un nouveau.',
    fresh: 'Recevoir un nouveau lien',
    notOpen: 'Aucun compte pour cette adresse',
    notOpenLead:
      'L’inscription n’est pas ouverte à cette adresse. Si vous pensez avoir déjà un compte, écrivez à {support}.',
    suspended: 'Ce compte est suspendu',
    suspendedLead:
      'L’exploitant du service {product} l’a suspendu : personne ne peut s’y connecter, et ses clés ne fonctionnent pas. Rien n’a été supprimé.',
    suspendedSubject: 'Compte suspendu : {email}',
    askSupport: 'Demander la raison à {support}',
  },
} as const satisfies Translation<typeof english, 'fr'>
