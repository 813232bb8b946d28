import type { deviceTexts as english } from '../en/device.ts'
import type { Translation } from '../text.ts'

export const deviceTexts = {
  device: {
    title: 'Connetti un dispositivo',
    typeLead: 'Inserisci il codice mostrato dal tuo dispositivo o terminale.',
    code: 'Codice del dispositivo',
    codeHint: '8 lettere, come WDJB-MJHT. Maiuscole o minuscole, con o senza trattino.',
    next: 'Continua',
    unknownCode:
      'Nessun dispositivo mostra ora questo codice. Controlla le lettere; un codice vale 10 minuti e funziona una volta sola.',
    codesRefused:
      'Sono stati inseriti troppi codici errati, quindi per ora non se ne verifica nessuno. Apri il link mostrato dal tuo dispositivo: quello funziona.',
    gone: 'Questa richiesta non è più valida',
    goneLead: 'È già stata decisa, o i suoi 10 minuti sono passati. Ricomincia dal dispositivo.',
    signInAgain:
      'Per approvare un dispositivo accedi di nuovo: il tuo ultimo accesso risale a più di 30 minuti fa.',
    asks: '{client} chiede l’accesso al tuo account',
    who: 'Programma',
    device: 'Dispositivo',
    claimed: '«{name}», secondo il dispositivo stesso',
    unnamed: 'Non ha indicato un nome',
    from: 'Origine',
    sameNetwork: 'la stessa rete in cui sei tu',
    otherNetwork: 'una rete diversa dalla tua',
    asked: 'Richiesta',
    account: 'Il tuo account',
    codeNow: 'Il suo codice',
    mayTitle: 'Se approvi, riceve',
    key: 'Una chiave API che scade entro 90 giorni e che permette di:',
    access: 'L’accesso al tuo account, finché non lo revochi, per:',
    ownScope: 'un’autorizzazione per un altro servizio',
    compared: 'L’ho avviato io, e il dispositivo davanti a me mostra esattamente questo codice.',
    comparedMissing: 'Confronta il codice con quello del tuo dispositivo e spunta la casella se è lo stesso.',
    warning:
      'Qualcuno ti ha inviato questo link o questo codice? Allora rifiuta: approvando gli daresti accesso al tuo account.',
    approve: 'Approva',
    deny: 'Rifiuta',
    approved: 'Il dispositivo è connesso',
    approvedLead:
      'Torna al dispositivo: continua da solo. La sua chiave è tra le tue chiavi API, o la sua sessione tra le tue sessioni; da lì puoi revocarla o chiuderla.',
    denied: 'Il dispositivo è stato rifiutato',
    deniedLead: 'Non riceve nulla. Se qualcuno ti ha inviato il link, avvisa il gestore del servizio.',
    keys: 'Vedi le tue chiavi',
  },
} as const satisfies Translation<typeof english, 'it'>
