import type { mailsTexts as english } from '../en/mails.ts'
import type { Translation } from '../text.ts'

export const mailsTexts = {
  mails: {
    paste: 'Wenn die Schaltfläche nicht funktioniert, öffnen Sie diese Adresse in Ihrem Browser:',
    code: 'Oder geben Sie diesen Code dort ein, wo Sie ihn angefordert haben:',
    expires:
      'Der Link und der Code laufen in {minutes} Minuten ab und funktionieren einmal. Geben Sie sie niemandem.',
    support: 'Fragen? Schreiben Sie an {support}',
    links: { terms: 'Nutzungsbedingungen', privacy: 'Datenschutz' },
    signup: {
      subject: 'Legen Sie Ihr Konto bei {product} an ({time})',
      preheader: 'Ein Klick legt Ihr Konto an. Der Link und der Code laufen in {minutes} Minuten ab.',
      heading: 'Legen Sie Ihr Konto bei {product} an',
      lead: 'Für diese Adresse gibt es noch kein Konto bei {product}. Bestätigen Sie, dass die Adresse Ihnen gehört, und Ihr Konto ist bereit.',
      button: 'Konto anlegen',
      ignore:
        'Wenn Sie das nicht angefordert haben, können Sie diese E-Mail ignorieren: Ohne den Link oder den Code wird kein Konto angelegt.',
    },
    login: {
      subject: 'Bei {product} anmelden ({time})',
      preheader: 'Ihr Link zum Anmelden. Der Link und der Code laufen in {minutes} Minuten ab.',
      heading: 'Bei {product} anmelden',
      lead: 'Willkommen zurück. Melden Sie sich mit der Schaltfläche an; ein Passwort ist nicht nötig.',
      button: 'Anmelden',
      ignore:
        'Wenn Sie das nicht angefordert haben, können Sie diese E-Mail ignorieren: Ohne den Link oder den Code kann sich niemand anmelden.',
    },
    invitation: {
      subject: 'Sie sind zu {product} eingeladen',
      preheader: 'Melden Sie sich mit dieser Adresse an, und Ihr Konto ist bereit.',
      heading: 'Sie sind zu {product} eingeladen',
      lead: 'Der Betreiber dieses Dienstes hat diese Adresse eingeladen. Melden Sie sich mit ihr an: Ein Link und ein Code kommen per Mail, ein Passwort ist nicht nötig, und Ihr Konto ist bereit.',
      button: 'Anmelden',
      ends: 'Die Einladung endet am {date}.',
      ignore:
        'Wenn Sie das nicht erwartet haben, können Sie diese E-Mail ignorieren: Ohne eine Anmeldung wird kein Konto angelegt.',
    },
    welcome: {
      subject: 'Willkommen bei {product}',
      preheader: 'Ihr Konto ist bereit. Als Nächstes: Ihr erster API-Schlüssel.',
      heading: 'Willkommen bei {product}',
      lead: 'Ihr Konto ist bereit, im kostenlosen Tarif.',
      leadWithCredit: 'Ihr Konto ist bereit, im kostenlosen Tarif und mit {credit} Startguthaben.',
      next: 'Der nächste Schritt ist ein API-Schlüssel: Geben Sie ihn Ihrem Agenten, und er verbindet sich von selbst. Sie sehen jede bestehende Verbindung, und wird ein Schlüssel beendet, enden sofort auch seine Verbindungen.',
      button: 'Ersten Schlüssel erstellen',
    },
    refreshTokenReused: {
      subject: '{product}-Sicherheit: Eine Sitzung wurde beendet ({at})',
      preheader: 'Jemand hat ein Anmelde-Token vorgezeigt, das bereits verwendet worden war.',
      heading: 'Wir haben eine Ihrer Sitzungen beendet',
      lead: 'Ein Token dieser Sitzung wurde ein zweites Mal verwendet. Das geschieht, wenn eine Kopie davon in anderen Händen ist, daher wurde die Sitzung beendet. Ihre anderen Sitzungen laufen weiter.',
      button: 'Sitzungen ansehen',
      unknown:
        'Wenn Sie das nicht wiedererkennen, beenden Sie die Sitzungen und Schlüssel, die nicht Ihre sind.',
    },
    keyRevokedByHolder: {
      subject: '{product}-Sicherheit: Ein API-Schlüssel wurde widerrufen ({at})',
      preheader: 'Jemand, der den Schlüssel besitzt, hat ihn gemeldet.',
      heading: 'Einer Ihrer API-Schlüssel wurde widerrufen',
      lead: 'Jemand, der diesen Schlüssel besitzt, hat ihn beendet, wie man es mit einem Schlüssel tut, der irgendwo gefunden wurde, wo er nicht sein sollte. Er funktioniert nicht mehr, und seine Verbindungen sind geschlossen. Wenn er in Gebrauch war, erstellen Sie einen neuen.',
    },
    keyExpiring: {
      subject: {
        one: '{product}: Der API-Schlüssel {key} läuft in {count} Tag ab',
        other: '{product}: Der API-Schlüssel {key} läuft in {count} Tagen ab',
      },
      subjectToday: '{product}: Der API-Schlüssel {key} läuft heute ab',
      preheader: 'Rotieren Sie ihn rechtzeitig, und nichts bleibt stehen.',
      heading: {
        one: 'Ein API-Schlüssel läuft in {count} Tag ab',
        other: 'Ein API-Schlüssel läuft in {count} Tagen ab',
      },
      headingToday: 'Ein API-Schlüssel läuft heute ab',
      lead: 'Danach wird er abgelehnt, und seine Verbindungen werden geschlossen. Rotieren Sie ihn vorher: Der neue Schlüssel hat dieselben Rechte, und beide funktionieren, während Sie wechseln.',
    },
    keyUsedAgain: {
      subject: '{product}-Sicherheit: Ein ruhender API-Schlüssel ist wieder in Gebrauch ({at})',
      preheader: 'Er war lange nicht verwendet worden.',
      heading: 'Ein ruhender API-Schlüssel ist wieder in Gebrauch',
      lead: 'Dieser Schlüssel war lange nicht verwendet worden. Wenn Sie das waren, ist alles in Ordnung. Wenn nicht, widerrufen Sie ihn: Seine Verbindungen enden sofort.',
    },
    keyLimit: {
      near: {
        subject: '{product}: Der API-Schlüssel {key} hat 80 % einer Grenze verbraucht: {limit}',
        preheader: 'Bald ist sie erreicht. Belastungen und Aufrufe darüber werden abgelehnt.',
        heading: 'Ein API-Schlüssel hat 80 % einer Grenze verbraucht: {limit}',
      },
      reached: {
        subject: '{product}: Der API-Schlüssel {key} hat eine Grenze erreicht: {limit}',
        preheader: 'Belastungen und Aufrufe darüber werden abgelehnt.',
        heading: 'Ein API-Schlüssel hat eine Grenze erreicht: {limit}',
      },
      lead: 'Belastungen und Aufrufe darüber werden abgelehnt. Wenn das mehr ist, als Sie erwartet haben, sehen Sie nach, wofür der Schlüssel verwendet wird.',
      spend: { day: 'Ausgaben pro Tag', month: 'Ausgaben pro Monat', total: 'Ausgaben insgesamt' },
      requests: {
        second: 'Anfragen pro Sekunde',
        minute: 'Anfragen pro Minute',
        hour: 'Anfragen pro Stunde',
        day: 'Anfragen pro Tag',
      },
      quota: {
        hour: 'Kontingent pro Stunde',
        day: 'Kontingent pro Tag',
        month: 'Kontingent pro Monat',
        total: 'Kontingent insgesamt',
      },
    },
    keyNewNetwork: {
      subject: '{product}-Sicherheit: Ein API-Schlüssel wird aus einem neuen Netz verwendet ({at})',
      preheader: 'Von dort war er zuvor nicht verwendet worden.',
      heading: 'Ein API-Schlüssel wird aus einem neuen Netz verwendet',
      lead: 'Wenn Sie das waren, ist alles in Ordnung. Wenn nicht, widerrufen Sie den Schlüssel: Seine Verbindungen enden sofort. Bei einem Schlüssel, der immer aus denselben Netzen verwendet wird, können Sie diese festlegen; dann funktioniert er nirgendwo sonst.',
    },
    keyCreatedByDevice: {
      subject: '{product}-Sicherheit: Ein Gerät hat einen API-Schlüssel bekommen ({at})',
      preheader: 'Es wurde auf der Seite für Geräte bestätigt.',
      heading: 'Ein Gerät hat einen API-Schlüssel bekommen',
      lead: 'Ein Gerät oder Terminal, das mit Ihrem Konto bestätigt wurde, hat diesen Schlüssel erstellt. Wenn Sie das waren, ist alles in Ordnung. Wenn nicht, widerrufen Sie den Schlüssel: Seine Verbindungen enden sofort. Beenden Sie dann die Sitzungen, die Sie nicht wiedererkennen.',
    },
    webhookDisabled: {
      subject: '{product}: Ein Webhook wurde deaktiviert ({at})',
      preheader: 'Sein Endpunkt hat drei Tage lang nichts angenommen.',
      heading: 'Ein Webhook wurde deaktiviert',
      lead: 'Der Endpunkt hat drei Tage lang kein Ereignis angenommen, daher wird ihm nichts mehr gesendet. Wartende Ereignisse bleiben erhalten und werden gesendet, wenn Sie ihn wieder aktivieren; was bis dahin geschieht, wird nicht gesendet.',
      button: 'Webhook ansehen',
    },
    test: {
      subject: '{product}: Testmail',
      preheader: 'Mails von diesem Dienst kommen an.',
      heading: 'Mail funktioniert',
      lead: 'Jemand, der diesen Dienst betreibt, hat diesen Test angefordert. Sie müssen nichts tun.',
    },
    keysButton: 'Schlüssel ansehen',
    keyButton: 'Schlüssel ansehen',
    facts: {
      name: 'Name',
      key: 'Schlüssel',
      when: 'Wann',
      network: 'Netz',
      program: 'Programm',
      unknownProgram: 'unbekannt',
      revoked: 'Widerrufen',
      expires: 'Läuft ab',
      used: 'Verwendet',
      noticed: 'Bemerkt',
      device: 'Gerät',
      unnamedDevice: 'ohne Namen',
      created: 'Erstellt',
      endpoint: 'Endpunkt',
      failure: 'Letzter Fehler',
      disabled: 'Deaktiviert',
      requested: 'Angefordert',
      limit: 'Limit',
      usedSoFar: 'Bisher verbraucht',
    },
  },
} as const satisfies Translation<typeof english, 'de'>
