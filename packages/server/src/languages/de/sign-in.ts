import type { signInTexts as english } from '../en/sign-in.ts'
import type { Translation } from '../text.ts'

export const signInTexts = {
  signIn: {
    title: 'Anmelden',
    heading: 'Bei {product} anmelden',
    lead: 'Wir senden Ihnen einen Link, mit dem Sie sich anmelden. Ein Passwort gibt es nicht.',
    newHere: {
      open: 'Neu hier? Derselbe Link legt Ihr Konto an.',
      openWithCredit: 'Neu hier? Derselbe Link legt Ihr Konto an, mit {credit} zum Ausprobieren.',
      domains: 'Neu hier? Derselbe Link legt Ihr Konto an, wenn Ihre Adresse eines haben darf.',
      invited: 'Neu hier? Nur wer eingeladen wurde, bekommt einen Link.',
    },
    email: 'E-Mail-Adresse',
    emailExample: 'ada@example.com',
    submit: 'Link senden',
    badEmail: 'Das ist keine einfache E-Mail-Adresse. Sie sollte aussehen wie ada@example.com.',
  },
  checkMail: {
    title: 'Sehen Sie in Ihr Postfach',
    lead: 'Ein Link und ein Code sind unterwegs an {email}. Öffnen Sie den Link in diesem Browser, oder lesen Sie die Mail an einem beliebigen Ort und geben Sie hier ihren Code ein. Beide funktionieren einmal, innerhalb von 5 Minuten.',
    code: 'Code aus der Mail',
    codeHint: '8 Ziffern',
    submit: 'Mit dem Code anmelden',
    badCode:
      'Dieser Code stimmt nicht. Prüfen Sie ihn, verwenden Sie die Schaltfläche in der Mail, oder fordern Sie einen neuen an.',
    codesRefused:
      'Es wurden zu viele falsche Codes eingegeben, daher wird vorerst keiner angenommen. Verwenden Sie die Schaltfläche in der Mail: Sie funktioniert.',
    expired: 'Dieser Code ist abgelaufen. Fordern Sie einen neuen an.',
    used: 'Dieser Code oder ein späterer wurde bereits verwendet. Fordern Sie einen neuen an.',
    resend: 'Erneut senden',
    wait: 'Sie können in {time} erneut senden.',
    limited: 'Es wurden zu viele Mails gesendet.',
    noNewMail:
      'Es wurde keine neue Mail gesendet: Es waren schon zu viele. Der letzte Link und der letzte Code funktionieren, bis sie ablaufen.',
    limitIs: 'Falls Sie mit dieser Installation entwickeln: Die Einstellung {setting} hebt die Grenze an.',
    wrongAddress: 'Falsche Adresse?',
    inbox: 'Lokalen Posteingang öffnen',
    inboxElsewhere:
      'Es ist kein Mailserver eingerichtet, daher bleiben Mails auf dem Rechner, auf dem dieser Dienst läuft. Dort zeigt sie dieser Befehl:',
  },
  verify: {
    title: 'Anmelden',
    signingIn: 'Sie werden angemeldet …',
    lead: 'Weiter als {email}',
    submit: 'Anmelden',
    notYou:
      'Wenn Sie das nicht angefordert haben, schließen Sie die Seite: Ohne die Schaltfläche geschieht nichts.',
    other: 'Sie sind gerade als {email} angemeldet. Wenn Sie sich hier anmelden, endet das.',
    used: 'Dieser Link wurde bereits verwendet',
    usedLead:
      'Jeder Link funktioniert einmal, und wird einer verwendet, sind die anderen ungültig. Wenn Sie das nicht waren, kann jemand anderes Ihre Mails lesen.',
    expired: 'Dieser Link ist abgelaufen',
    expiredLead: 'Ein Link gilt 5 Minuten. So bekommen Sie einen neuen:',
    invalid: 'Dieser Link funktioniert nicht',
    invalidLead:
      'Er ist vielleicht abgeschnitten oder für eine andere Adresse bestimmt. Kopieren Sie den ganzen Link aus der Mail, oder fordern Sie einen neuen an.',
    fresh: 'Neuen Link senden',
    notOpen: 'Kein Konto für diese Adresse',
    notOpenLead:
      'Die Registrierung steht ihr nicht offen. Wenn Sie ein Konto haben sollten, schreiben Sie an {support}.',
    suspended: 'Dieses Konto ist gesperrt',
    suspendedLead:
      'Der Betreiber von {product} hat es gesperrt. Niemand kann sich damit anmelden, und seine Schlüssel funktionieren nicht. Es wurde nichts gelöscht.',
    suspendedSubject: 'Gesperrtes Konto {email}',
    askSupport: '{support} nach dem Grund fragen',
  },
} as const satisfies Translation<typeof english, 'de'>
