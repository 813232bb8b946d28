import type { frameTexts as english } from '../en/frame.ts'
import type { Translation } from '../text.ts'

export const frameTexts = {
  nav: {
    main: 'Hauptnavigation',
    keys: 'Schlüssel',
    agents: 'Agenten',
    sessions: 'Sitzungen',
    account: 'Konto',
    inbox: 'Posteingang',
    admin: 'Verwaltung',
    localInbox: 'Lokaler Posteingang',
    signIn: 'Anmelden',
    signOut: 'Abmelden',
    skip: 'Zum Inhalt springen',
    more: 'Weiteres',
    docs: 'Dokumentation',
    terms: 'Nutzungsbedingungen',
    privacy: 'Datenschutz',
    support: 'Support',
    theme: 'Farben',
    themes: { system: 'System', light: 'Hell', dark: 'Dunkel' },
  },
  units: {
    seconds: { one: '{count} Sekunde', other: '{count} Sekunden' },
    minutes: { one: '{count} Minute', other: '{count} Minuten' },
    hours: { one: '{count} Stunde', other: '{count} Stunden' },
    justNow: 'gerade eben',
  },
  notices: {
    ended:
      'Sie wurden abgemeldet, weil diese Sitzung beendet wurde. Melden Sie sich erneut an, um fortzufahren.',
    signed_out: 'Sie sind abgemeldet.',
    resent: 'Eine neue Mail ist unterwegs. Frühere funktionieren weiterhin.',
    welcome: 'Willkommen. Ihr Konto ist bereit.',
    made_before:
      'Dieser Schlüssel wurde bereits erstellt und wird nur einmal angezeigt. Haben Sie ihn nicht gespeichert, rotieren Sie ihn hier.',
    shown_once:
      'Der Schlüssel selbst wurde einmal angezeigt, als er erstellt wurde. Haben Sie ihn nicht gespeichert, rotieren Sie ihn hier.',
    renamed: 'Der Name wurde geändert.',
    networks_saved: 'Die Netze wurden geändert.',
    limits_saved: 'Die Grenzen wurden geändert.',
    revoked: 'Der Schlüssel wurde widerrufen. Er funktioniert nicht mehr, und seine Agenten wurden getrennt.',
    disconnected:
      'Getrennt. Der Agent verbindet sich von selbst wieder, solange sein Schlüssel aktiv ist; widerrufen Sie den Schlüssel, um ihn fernzuhalten.',
    gone: 'Diese Verbindung ist bereits beendet.',
    session_ended: 'Die Sitzung wurde beendet.',
    others_ended: 'Alle anderen Sitzungen wurden beendet.',
    saved: 'Gespeichert.',
    mail_queued: 'Die Mail ist in der Warteschlange. Ihr Status zeigt, ob sie angenommen wurde.',
    mail_allowed: 'An diese Adresse werden wieder Mails gesendet.',
    granted: 'Diese App darf Ihr Guthaben wieder belasten.',
    withdrawn: 'Diese App darf Ihr Guthaben nicht mehr belasten.',
    consent_withdrawn: 'Diese App hat keinen Zugriff mehr auf Ihr Konto.',
  },
  errors: {
    problem: 'Problem',
    notFound: 'Hier ist nichts',
    notFoundLead: 'Die Adresse ist vielleicht vertippt, oder die Seite gibt es nicht mehr.',
    method: 'Diese Seite lässt sich so nicht öffnen',
    methodLead: 'Diese Adresse unterstützt die Methode der Anfrage nicht. Es wurde nichts geändert.',
    form: 'Dieses Formular war veraltet',
    formLead:
      'Es wurde nichts geändert. Gehen Sie zurück, laden Sie die Seite neu und versuchen Sie es noch einmal.',
    limited: 'Zu viele Versuche',
    refused: 'Das war nicht möglich',
    unavailable: 'Der Dienst erreicht gerade seine Datenbank nicht',
    unavailableLead: 'Es wurde nichts geändert. Versuchen Sie es gleich noch einmal.',
    internal: 'Bei uns ist etwas schiefgegangen',
    home: 'Zur Startseite',
    tell: 'Wenn es wieder geschieht, schreiben Sie an den Support und nennen Sie diese Anfrage:',
  },
} as const satisfies Translation<typeof english, 'de'>
