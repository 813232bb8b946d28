import type { signInTexts as english } from '../en/sign-in.ts'
import type { Translation } from '../text.ts'

export const signInTexts = {
  signIn: {
    title: 'Accedi',
    heading: 'Accedi a {product}',
    lead: 'Ti inviamo per e-mail un link per accedere. Non c’è nessuna password.',
    newHere: {
      open: 'È la tua prima volta qui? Lo stesso link crea il tuo account.',
      openWithCredit:
        'È la tua prima volta qui? Lo stesso link crea il tuo account, con {credit} per fare prove.',
      domains:
        'È la tua prima volta qui? Lo stesso link crea il tuo account, se il tuo indirizzo può averne uno.',
      invited: 'È la tua prima volta qui? Riceve un link solo chi è stato invitato.',
    },
    email: 'Indirizzo e-mail',
    emailExample: 'ada@example.com',
    submit: 'Inviami un link',
    badEmail: 'Questo non è un indirizzo e-mail valido. Deve essere simile a ada@example.com.',
  },
  checkMail: {
    title: 'Controlla la tua posta',
    lead: 'Un link e un codice sono in arrivo a {email}. Apri il link in questo browser, oppure leggi l’e-mail dove vuoi e inserisci qui il codice. Entrambi funzionano una sola volta, per 5 minuti.',
    code: 'Codice dell’e-mail',
    codeHint: '8 cifre',
    submit: 'Accedi con il codice',
    badCode: 'Questo codice non è corretto. Controllalo, usa il pulsante dell’e-mail o chiedine uno nuovo.',
    codesRefused:
      'Sono stati inseriti troppi codici errati, quindi per ora non se ne accetta nessuno. Usa il pulsante dell’e-mail: quello funziona.',
    expired: 'Questo codice è scaduto. Chiedine uno nuovo.',
    used: 'Questo codice, o uno successivo, è già stato usato. Chiedine uno nuovo.',
    resend: 'Invia di nuovo',
    wait: 'Puoi inviare di nuovo tra {time}.',
    limited: 'Sono state inviate troppe e-mail.',
    noNewMail:
      'Nessuna nuova e-mail è stata inviata: erano già troppe. L’ultimo link e l’ultimo codice funzionano fino alla scadenza.',
    limitIs: 'Se sviluppi con questa installazione: l’impostazione {setting} alza il limite.',
    wrongAddress: 'Indirizzo sbagliato?',
    inbox: 'Apri la posta locale',
    inboxElsewhere:
      'Nessun server di posta è configurato, quindi le e-mail restano sulla macchina che esegue questo servizio. Lì le mostra questo comando:',
  },
  verify: {
    title: 'Accedi',
    signingIn: 'Accesso in corso…',
    lead: 'Continua come {email}',
    submit: 'Accedi',
    notYou: 'Se non l’hai chiesto tu, chiudi la pagina: senza il pulsante non succede nulla.',
    other: 'Ora qui è aperta una sessione come {email}. Se accedi, quella sessione si chiude.',
    used: 'Questo link è già stato usato',
    usedLead:
      'Ogni link funziona una volta sola, e usarne uno annulla gli altri. Se non l’hai usato tu, qualcun altro può leggere la tua posta.',
    expired: 'Questo link è scaduto',
    expiredLead: 'Un link funziona per 5 minuti. Ecco come riceverne uno nuovo:',
    invalid: 'Questo link non funziona',
    invalidLead:
      'Forse è incompleto, o è destinato a un altro indirizzo. Copia l’intero link dall’e-mail o chiedine uno nuovo.',
    fresh: 'Inviami un nuovo link',
    notOpen: 'Nessun account per questo indirizzo',
    notOpenLead:
      'Questo indirizzo non può registrarsi. Se pensi di avere già un account, scrivi a {support}.',
    suspended: 'Questo account è sospeso',
    suspendedLead:
      'Il gestore di {product} lo ha sospeso: nessuno può accedervi, e le sue chiavi non funzionano. Non è stato eliminato nulla.',
    suspendedSubject: 'Account sospeso: {email}',
    askSupport: 'Chiedi il motivo a {support}',
  },
} as const satisfies Translation<typeof english, 'it'>
