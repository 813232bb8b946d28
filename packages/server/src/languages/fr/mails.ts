import type { mailsTexts as english } from '../en/mails.ts'
import type { Translation } from '../text.ts'

export const mailsTexts = {
  mails: {
    paste: 'Si le bouton ne fonctionne pas, ouvrez cette adresse dans votre navigateur :',
    code: 'Ou saisissez ce code là où vous l’avez demandé :',
    expires:
      'Le lien et le code expirent dans {minutes} minutes et fonctionnent une seule fois. Ne les donnez à personne.',
    support: 'Des questions ? Écrivez à {support}',
    links: { terms: 'Conditions', privacy: 'Confidentialité' },
    signup: {
      subject: 'Créez votre compte {product} ({time})',
      preheader: 'Un clic crée votre compte. Le lien et le code expirent dans {minutes} minutes.',
      heading: 'Créez votre compte {product}',
      lead: 'Cette adresse n’a pas encore de compte {product}. Confirmez qu’elle est à vous, et votre compte est prêt.',
      button: 'Créer le compte',
      ignore:
        'Si vous n’avez rien demandé, vous pouvez ignorer cet e-mail : sans le lien ou le code, aucun compte n’est créé.',
    },
    login: {
      subject: 'Connexion à {product} ({time})',
      preheader: 'Votre lien de connexion. Le lien et le code expirent dans {minutes} minutes.',
      heading: 'Se connecter à {product}',
      lead: 'Ravis de vous revoir. Utilisez le bouton pour vous connecter ; aucun mot de passe n’est nécessaire.',
      button: 'Se connecter',
      ignore:
        'Si vous n’avez rien demandé, vous pouvez ignorer cet e-mail : personne ne peut se connecter sans le lien ou le code.',
    },
    invitation: {
      subject: 'Invitation à rejoindre {product}',
      preheader: 'Connectez-vous avec cette adresse, et votre compte est prêt.',
      heading: 'Rejoignez {product}',
      lead: 'L’exploitant de ce service a invité cette adresse. Connectez-vous avec elle : un lien et un code arrivent par e-mail, aucun mot de passe n’est nécessaire, et votre compte est prêt.',
      button: 'Se connecter',
      ends: 'L’invitation expire le {date}.',
      ignore:
        'Si vous n’attendiez pas cette invitation, vous pouvez ignorer cet e-mail : sans connexion, aucun compte n’est créé.',
    },
    welcome: {
      subject: 'Bienvenue sur {product}',
      preheader: 'Votre compte est prêt. Prochaine étape : votre première clé API.',
      heading: 'Bienvenue sur {product}',
      lead: 'Votre compte est prêt, avec la formule gratuite.',
      leadWithCredit: 'Votre compte est prêt, avec la formule gratuite et un crédit d’essai de {credit}.',
      next: 'La prochaine étape est une clé API : donnez-la à votre agent, et il se connecte de lui-même. Vous voyez toutes les connexions actives, et révoquer une clé met fin immédiatement à ses connexions.',
      button: 'Créer votre première clé',
    },
    refreshTokenReused: {
      subject: 'Sécurité {product} : une session a été fermée ({at})',
      preheader: 'Quelqu’un a présenté un jeton de session qui avait déjà été utilisé.',
      heading: 'Nous avons fermé l’une de vos sessions',
      lead: 'Un jeton de cette session a été utilisé une seconde fois. Cela arrive quand une copie se trouve en d’autres mains : la session a donc été fermée. Vos autres sessions continuent.',
      button: 'Voir vos sessions',
      unknown:
        'Si cela ne vous dit rien, fermez les sessions et révoquez les clés qui ne sont pas les vôtres.',
    },
    keyRevokedByHolder: {
      subject: 'Sécurité {product} : une clé API a été révoquée ({at})',
      preheader: 'Une personne qui détient la clé l’a signalée.',
      heading: 'L’une de vos clés API a été révoquée',
      lead: 'Une personne qui détient cette clé l’a révoquée, comme on le fait d’une clé trouvée là où elle ne devrait pas être. Elle ne fonctionne plus, et ses connexions sont fermées. Si elle était en service, créez-en une nouvelle.',
    },
    keyExpiring: {
      subject: {
        one: '{product} : la clé API {key} expire dans {count} jour',
        many: '{product} : la clé API {key} expire dans {count} de jours',
        other: '{product} : la clé API {key} expire dans {count} jours',
      },
      subjectToday: '{product} : la clé API {key} expire aujourd’hui',
      preheader: 'Renouvelez-la à temps, et rien ne s’arrête.',
      heading: {
        one: 'Une clé API expire dans {count} jour',
        many: 'Une clé API expire dans {count} de jours',
        other: 'Une clé API expire dans {count} jours',
      },
      headingToday: 'Une clé API expire aujourd’hui',
      lead: 'Ensuite, elle est refusée et ses connexions sont fermées. Renouvelez-la avant : la nouvelle clé a les mêmes droits, et les deux fonctionnent pendant que vous passez de l’une à l’autre.',
    },
    keyUsedAgain: {
      subject: 'Sécurité {product} : une clé API longtemps inutilisée sert de nouveau ({at})',
      preheader: 'Elle n’avait pas été utilisée depuis longtemps.',
      heading: 'Une clé API longtemps inutilisée sert de nouveau',
      lead: 'Cette clé n’avait pas été utilisée depuis longtemps. Si c’était vous, tout va bien. Sinon, révoquez-la : ses connexions prennent fin immédiatement.',
    },
    keyLimit: {
      near: {
        subject: '{product} : la clé API {key} a atteint 80 % d’une limite ({limit})',
        preheader: 'La limite est bientôt atteinte. Au-delà, les débits et les appels sont refusés.',
        heading: 'Une clé API a atteint 80 % d’une limite : {limit}',
      },
      reached: {
        subject: '{product} : la clé API {key} a atteint une limite ({limit})',
        preheader: 'Au-delà, les débits et les appels sont refusés.',
        heading: 'Une clé API a atteint une limite : {limit}',
      },
      lead: 'Au-delà de cette limite, les débits et les appels sont refusés. Si c’est plus que prévu, vérifiez à quoi sert la clé.',
      spend: { day: 'dépenses par jour', month: 'dépenses par mois', total: 'dépenses au total' },
      requests: {
        second: 'requêtes par seconde',
        minute: 'requêtes par minute',
        hour: 'requêtes par heure',
        day: 'requêtes par jour',
      },
      quota: {
        hour: 'quota par heure',
        day: 'quota par jour',
        month: 'quota par mois',
        total: 'quota total',
      },
    },
    keyNewNetwork: {
      subject: 'Sécurité {product} : une clé API est utilisée depuis un nouveau réseau ({at})',
      preheader: 'Elle n’avait jamais été utilisée depuis ce réseau.',
      heading: 'Une clé API est utilisée depuis un nouveau réseau',
      lead: 'Si c’était vous, tout va bien. Sinon, révoquez la clé : ses connexions prennent fin immédiatement. Si une clé est toujours utilisée depuis les mêmes réseaux, vous pouvez les lui indiquer ; elle ne fonctionne alors nulle part ailleurs.',
    },
    keyCreatedByDevice: {
      subject: 'Sécurité {product} : un appareil a reçu une clé API ({at})',
      preheader: 'Il a été approuvé sur la page des appareils.',
      heading: 'Un appareil a reçu une clé API',
      lead: 'Un appareil ou un terminal approuvé avec votre compte a créé cette clé. Si c’était vous, tout va bien. Sinon, révoquez la clé : ses connexions prennent fin immédiatement. Fermez ensuite les sessions que vous ne reconnaissez pas.',
    },
    webhookDisabled: {
      subject: '{product} : un webhook a été désactivé ({at})',
      preheader: 'Son point de terminaison n’a rien accepté pendant trois jours.',
      heading: 'Un webhook a été désactivé',
      lead: 'Le point de terminaison n’a accepté aucun événement pendant trois jours : plus rien ne lui est envoyé. Les événements en attente sont conservés, et envoyés quand vous le réactivez ; ceux qui surviennent d’ici là ne le sont pas.',
      button: 'Voir vos webhooks',
    },
    test: {
      subject: '{product} : e-mail de test',
      preheader: 'Les e-mails de ce service arrivent.',
      heading: 'L’envoi d’e-mails fonctionne',
      lead: 'Une personne qui gère ce service a demandé ce test. Il n’y a rien à faire.',
    },
    keysButton: 'Voir vos clés',
    keyButton: 'Voir la clé',
    facts: {
      name: 'Nom',
      key: 'Clé',
      when: 'Date',
      network: 'Réseau',
      program: 'Programme',
      unknownProgram: 'inconnu',
      revoked: 'Révocation',
      expires: 'Expiration',
      used: 'Utilisation',
      noticed: 'Constat',
      device: 'Appareil',
      unnamedDevice: 'sans nom',
      created: 'Création',
      endpoint: 'Point de terminaison',
      failure: 'Dernier échec',
      disabled: 'Désactivation',
    },
  },
} as const satisfies Translation<typeof english, 'fr'>
