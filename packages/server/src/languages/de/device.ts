import type { deviceTexts as english } from '../en/device.ts'
import type { Translation } from '../text.ts'

export const deviceTexts = {
  device: {
    title: 'Gerät verbinden',
    typeLead: 'Geben Sie den Code ein, den Ihr Gerät oder Terminal anzeigt.',
    code: 'Code auf dem Gerät',
    codeHint: '8 Buchstaben wie WDJB-MJHT. Groß oder klein, mit oder ohne Bindestrich.',
    next: 'Weiter',
    unknownCode:
      'Kein Gerät zeigt gerade diesen Code. Prüfen Sie die Buchstaben; ein Code gilt 10 Minuten und funktioniert einmal.',
    codesRefused:
      'Es wurden zu viele falsche Codes eingegeben, daher wird vorerst keiner geprüft. Öffnen Sie den Link, den Ihr Gerät anzeigt: Er funktioniert.',
    gone: 'Diese Anfrage ist vorbei',
    goneLead:
      'Über sie wurde bereits entschieden, oder ihre 10 Minuten sind abgelaufen. Beginnen Sie auf dem Gerät von vorn.',
    signInAgain:
      'Um ein Gerät zu bestätigen, melden Sie sich erneut an: Ihre letzte Anmeldung ist mehr als 30 Minuten her.',
    asks: '{client} bittet um Zugriff auf Ihr Konto',
    who: 'Programm',
    device: 'Gerät',
    claimed: '„{name}“, wie es sich selbst nennt',
    unnamed: 'Es hat keinen Namen genannt',
    from: 'Fragt von',
    sameNetwork: 'dem Netz, in dem auch Sie sind',
    otherNetwork: 'nicht dem Netz, in dem Sie sind',
    asked: 'Gefragt',
    account: 'Ihr Konto',
    codeNow: 'Sein Code',
    mayTitle: 'Wenn Sie bestätigen, bekommt es',
    key: 'Einen API-Schlüssel, der innerhalb von 90 Tagen abläuft und Folgendes darf:',
    access: 'Zugriff auf Ihr Konto, bis Sie ihn beenden, um:',
    ownScope: 'eine Berechtigung eines anderen Dienstes hier',
    compared: 'Ich habe das selbst begonnen, und das Gerät vor mir zeigt genau diesen Code.',
    comparedMissing:
      'Vergleichen Sie den Code mit dem auf Ihrem Gerät, und setzen Sie das Häkchen, wenn er derselbe ist.',
    warning:
      'Hat Ihnen jemand diesen Link oder diesen Code geschickt? Dann lehnen Sie ab: Mit einer Bestätigung gäben Sie Ihr Konto an diese Person.',
    approve: 'Bestätigen',
    deny: 'Ablehnen',
    approved: 'Das Gerät ist verbunden',
    approvedLead:
      'Gehen Sie zu ihm zurück: Es macht von selbst weiter. Sein Schlüssel ist unter Ihren API-Schlüsseln, oder seine Sitzung unter Ihren Sitzungen: Dort können Sie den Zugriff beenden.',
    denied: 'Das Gerät wurde abgelehnt',
    deniedLead: 'Es bekommt nichts. Wenn Ihnen jemand den Link geschickt hat, sagen Sie es Ihrem Betreiber.',
    keys: 'Schlüssel ansehen',
  },
} as const satisfies Translation<typeof english, 'de'>
