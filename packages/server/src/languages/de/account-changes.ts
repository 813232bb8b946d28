import type { accountChangesTexts as english } from '../en/account-changes.ts'
import type { Translation } from '../text.ts'

export const accountChangesTexts = {
  addressChange: {
    title: 'Adresse ändern',
    label: 'Neue Adresse',
    submit: 'Adresse ändern',
    hint: 'Beide Adressen bekommen einen Link. Nichts ändert sich, bevor beide bestätigt haben.',
    pending: 'Die Änderung auf {email} wartet noch auf:',
    awaits: 'den Link in der Mail an {email}',
    until: 'Sie kann bis {date} bestätigt werden.',
    cancel: 'Änderung abbrechen',
    same: 'Das ist bereits Ihre Adresse.',
    otherDomain: 'Konten haben hier nur Adressen bestimmter Domains, und diese gehört nicht dazu.',
    lead: 'Die Adresse Ihres Kontos ändert sich von {from} auf {to}, sobald beide bestätigt haben. Dann enden alle anderen Sitzungen; die Schlüssel bleiben, wie sie sind.',
    confirm: 'Bestätigen',
    confirmed: 'Bestätigt. Öffnen Sie nun den Link in der Mail an {email}.',
    invalid: 'Dieser Link funktioniert nicht',
    invalidLead:
      'Er ist vielleicht abgelaufen oder durch einen neueren ersetzt, oder er gehört zu einem anderen Konto als {email}. Es wurde nichts geändert.',
    toAccount: 'Zu Ihrem Konto',
  },
  deletion: {
    title: 'Konto löschen',
    lead: 'Nach {days} Tagen, in denen Sie es sich anders überlegen können.',
    start: 'Mein Konto löschen',
    confirmTitle: 'Ihr Konto löschen?',
    wait: 'Bis {date} läuft alles weiter, und Sie können das Konto behalten.',
    afterwards:
      'Danach enden seine Schlüssel und Sitzungen, seine Agenten werden getrennt, und Ihr Name und Ihre Adresse werden gelöscht.',
    ledger: 'Die Buchungen bleiben, ohne Ihren Namen. Was vom Guthaben übrig ist, verfällt.',
    again: 'Mit derselben Adresse können Sie sich wieder anmelden, ohne ein weiteres Startguthaben.',
    hint: 'Soll alles sofort enden, widerrufen Sie zuerst Ihre Schlüssel.',
    submit: 'Mein Konto am {date} löschen',
    cancel: 'Behalten',
    pending: 'Ihr Konto wird am {date} gelöscht. Bis dahin läuft alles weiter.',
    keep: 'Mein Konto behalten',
    lastAdministrator: 'Sie sind der letzte Administrator. Machen Sie zuerst jemand anderen dazu.',
  },
  balanceHistory: {
    title: 'Guthaben in den letzten {days} Tagen',
    summary: 'Von {from} auf {to}, zwischen {lowest} und {highest}.',
    change: 'Von {from} auf {to}.',
    same: '{balance} an jedem Tag.',
    columns: { day: 'Tag (UTC)', balance: 'Guthaben am Ende', change: 'Änderung' },
  },
  accountMails: {
    look: 'Ihr Konto ansehen',
    network: 'Netz',
    newAddress: 'Neue Adresse',
    expires: 'Der Link gilt bis {at} und funktioniert einmal.',
    deletionRequested: {
      subject: '{product}: Ihr Konto wird am {at} gelöscht',
      preheader: 'Bis dahin können Sie es behalten.',
      heading: 'Ihr Konto wird gelöscht',
      lead: 'Bis dahin läuft alles weiter. Danach enden seine Schlüssel und Sitzungen, und Name und Adresse werden gelöscht. Das lässt sich nicht rückgängig machen. Möchten Sie das Konto behalten, melden Sie sich an und drücken Sie den Knopf auf der Seite Ihres Kontos.',
      deleted: 'Wird gelöscht',
      asked: 'Verlangt',
      unknown:
        'Waren Sie das nicht, behalten Sie das Konto, und beenden Sie die Sitzungen und Schlüssel, die nicht Ihre sind.',
    },
    oldAddress: {
      subject: '{product}: Bestätigen Sie die neue Adresse Ihres Kontos ({at})',
      preheader: 'Sie ändert sich, sobald beide Adressen bestätigt haben.',
      heading: 'Die Adresse Ihres Kontos ändern?',
      lead: 'Jemand, der in Ihrem Konto angemeldet ist, möchte dessen Adresse ändern. Sie ändert sich, sobald diese Adresse und die neue bestätigt haben. Öffnen Sie den Link dort, wo Sie angemeldet sind.',
      button: 'Änderung bestätigen',
      unknown:
        'Waren Sie das nicht, bestätigen Sie nicht: Ohne den Link ändert sich nichts. Beenden Sie dann die Sitzungen, die nicht Ihre sind.',
    },
    newAddressMail: {
      subject: '{product}: Bestätigen Sie, dass diese Adresse Ihre ist ({at})',
      preheader: 'Sie wird zur Adresse eines Kontos, sobald beide Adressen bestätigt haben.',
      heading: 'Diese Adresse für Ihr Konto verwenden?',
      lead: 'Jemand möchte diese Adresse für sein {product}-Konto verwenden. Waren Sie das, bestätigen Sie es dort, wo Sie angemeldet sind. Auch die alte Adresse muss bestätigen.',
      button: 'Adresse bestätigen',
      ignore:
        'Haben Sie das nicht verlangt, können Sie diese Mail ignorieren: Ohne den Link geschieht nichts.',
    },
    addressTaken: {
      subject: '{product}: Diese Adresse hat bereits ein Konto ({at})',
      preheader: 'Jemand wollte sie für ein anderes Konto verwenden. Es wurde nichts geändert.',
      heading: 'Diese Adresse hat bereits ein Konto',
      lead: 'Jemand wollte diese Adresse für ein anderes {product}-Konto verwenden. Das geht nicht, solange sie ein eigenes Konto hat. Es wurde nichts geändert, und niemand hat davon erfahren.',
      ignore: 'Waren Sie das, löschen Sie zuerst eines der beiden Konten. Wenn nicht, ist nichts zu tun.',
    },
    addressChanged: {
      subject: '{product}-Sicherheit: Die Adresse Ihres Kontos wurde geändert ({at})',
      preheader: 'Mit dieser Adresse kann man sich dort nicht mehr anmelden.',
      heading: 'Die Adresse Ihres Kontos wurde geändert',
      lead: 'Beide Adressen haben die Änderung bestätigt. Mit dieser kann man sich nicht mehr anmelden, und alle anderen Sitzungen wurden beendet. Die Schlüssel bleiben, wie sie sind.',
      changed: 'Geändert',
      unknown: 'Waren Sie das nicht, schreiben Sie sofort an die Adresse unten.',
    },
  },
} as const satisfies Translation<typeof english, 'de'>
