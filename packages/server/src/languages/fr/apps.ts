import type { appsTexts as english } from '../en/apps.ts'
import type { Translation } from '../text.ts'

export const appsTexts = {
  apps: {
    signInTo: 'pour continuer vers {app}',
    consent: {
      title: 'Autoriser l’accès',
      heading: '{app} demande l’accès à votre compte',
      signedInAs: 'Vous utilisez le compte {email}.',
      other: 'Utiliser un autre compte',
      list: '{app} pourra :',
      actsAt:
        'Auprès de {audience}, cette application agira en votre nom ; ce service décide de ce qu’elle peut y faire.',
      unchecked: 'Personne n’a vérifié qui gère cette application : elle s’est décrite elle-même.',
      goesTo: 'Vous serez ensuite redirigé vers {host}.',
      later: 'Vous pourrez retirer cet accès à tout moment sur la page de votre compte.',
      allow: 'Autoriser',
      deny: 'Ne pas autoriser',
    },
    scopes: {
      openid: 'savoir que c’est vous, par l’identifiant de votre compte',
      profile: 'voir votre nom',
      email: 'voir votre adresse e-mail',
      offline_access: 'garder cet accès en votre absence, jusqu’à ce que vous y mettiez fin',
      'agent:connect': 'connecter des agents au hub en votre nom',
      'agents:send': 'envoyer des messages à vos agents connectés',
      'agents:read': 'lister et suivre vos agents connectés',
      'account:read': 'voir votre profil, votre solde et vos mouvements',
      'account:write': 'modifier votre nom, et retirer ce que vous avez accordé à des applications',
      'keys:read': 'lister vos clés et voir quand elles ont été utilisées',
      'keys:write': 'renommer et révoquer vos clés, et restreindre leurs réseaux et leurs limites',
      'events:read': 'voir les événements de sécurité de votre compte',
    },
    ownScope: 'utiliser « {scope} » auprès des services qui le reconnaissent',
    account: {
      title: 'Applications autorisées',
      lead: 'Applications auxquelles vous avez donné accès à votre compte. Un retrait prend effet aussitôt.',
      since: 'depuis le',
      withdraw: 'Retirer',
    },
    logout: {
      title: 'Se déconnecter',
      lead: 'Voulez-vous vous déconnecter ?',
      leadOfApp: '{app} vous demande de vous déconnecter.',
      explained:
        'La déconnexion vaut ici et dans les applications auxquelles vous vous êtes connecté depuis ce navigateur.',
      confirm: 'Se déconnecter',
      stay: 'Rester connecté',
      unusable: 'Retour à l’application',
      unusableLead: 'L’application a demandé un retour vers une adresse qui n’est pas enregistrée pour elle.',
    },
    unusable: {
      title: 'Cette connexion ne peut pas continuer',
      lead: 'L’application qui vous a envoyé ici a fait une demande à laquelle il est impossible de répondre. Retournez-y et réessayez ; si cela ne suffit pas, transmettez ceci aux personnes qui la gèrent :',
    },
    gone: {
      title: 'Rien n’est en attente ici',
      lead: 'Cette connexion est déjà terminée, a pris trop de temps ou a commencé dans un autre navigateur. Retournez à l’application et recommencez.',
    },
  },
} as const satisfies Translation<typeof english, 'fr'>
