import type { appsTexts as english } from '../en/apps.ts'
import type { Translation } from '../text.ts'

export const appsTexts = {
  apps: {
    signInTo: 'um mit {app} fortzufahren',
    consent: {
      title: 'Zugriff erlauben',
      heading: '{app} bittet um Zugriff auf Ihr Konto',
      signedInAs: 'Sie sind als {email} angemeldet.',
      other: 'Anderes Konto verwenden',
      list: '{app} kann dann:',
      actsAt: 'Bei {audience} handelt die App in Ihrem Namen; was sie dort darf, entscheidet dieser Dienst.',
      unchecked: 'Niemand hat geprüft, wer diese App betreibt: Sie hat sich selbst beschrieben.',
      goesTo: 'Danach geht es weiter zu {host}.',
      later: 'Sie können das jederzeit auf Ihrer Kontoseite widerrufen.',
      allow: 'Erlauben',
      deny: 'Nicht erlauben',
    },
    scopes: {
      openid: 'an der ID Ihres Kontos erkennen, dass Sie es sind',
      profile: 'Ihren Namen sehen',
      email: 'Ihre E-Mail-Adresse sehen',
      offline_access: 'diesen Zugriff auch in Ihrer Abwesenheit behalten, bis Sie ihn beenden',
      'agent:connect': 'in Ihrem Namen Agenten mit dem Hub verbinden',
      'agents:send': 'Nachrichten an Ihre verbundenen Agenten senden',
      'agents:read': 'Ihre verbundenen Agenten auflisten und beobachten',
      'account:read': 'Ihr Profil, Guthaben und Ihre Buchungen sehen',
      'account:write': 'Ihren Namen ändern und entziehen, was Sie Apps erlaubt haben',
      'keys:read': 'Ihre Schlüssel auflisten und sehen, wann sie verwendet wurden',
      'keys:write': 'Ihre Schlüssel umbenennen und widerrufen sowie ihre Netze und Limits enger fassen',
      'events:read': 'die Sicherheitsereignisse Ihres Kontos sehen',
    },
    ownScope: '„{scope}“ in Diensten verwenden, die es kennen',
    account: {
      title: 'Apps mit Zugriff',
      lead: 'Apps, denen Sie erlaubt haben, Ihr Konto zu verwenden. Entziehen Sie den Zugriff, endet sofort, was sie haben.',
      since: 'seit',
      withdraw: 'Entziehen',
    },
    logout: {
      title: 'Abmelden',
      lead: 'Möchten Sie sich abmelden?',
      leadOfApp: '{app} bittet Sie, sich abzumelden.',
      explained:
        'Sie werden hier und in den Apps abgemeldet, bei denen Sie sich mit diesem Browser angemeldet haben.',
      confirm: 'Abmelden',
      stay: 'Angemeldet bleiben',
      unusable: 'Zurück zur App',
      unusableLead:
        'Die App wollte als Nächstes angezeigt werden, aber diese Adresse ist nicht für sie registriert.',
    },
    unusable: {
      title: 'Diese Anmeldung kann nicht fortgesetzt werden',
      lead: 'Die App, die Sie hierher geschickt hat, hat eine Anfrage gestellt, die sich nicht beantworten lässt. Gehen Sie zu ihr zurück und versuchen Sie es noch einmal; hilft das nicht, teilen Sie ihren Betreibern dies mit:',
    },
    gone: {
      title: 'Hier wartet nichts',
      lead: 'Diese Anmeldung wurde bereits abgeschlossen, hat zu lange gedauert oder begann in einem anderen Browser. Gehen Sie zur App zurück und beginnen Sie von vorn.',
    },
  },
} as const satisfies Translation<typeof english, 'de'>
