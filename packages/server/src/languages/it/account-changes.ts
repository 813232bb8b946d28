import type { accountChangesTexts as english } from '../en/account-changes.ts'
import type { Translation } from '../text.ts'

export const accountChangesTexts = {
  addressChange: {
    title: 'Cambia indirizzo',
    label: 'Nuovo indirizzo',
    submit: 'Cambia indirizzo',
    hint: 'Viene inviato un link a entrambi gli indirizzi. Nulla cambia finché non hanno confermato tutti e due.',
    pending: 'Per il passaggio a {email} manca ancora:',
    awaits: 'il link dell’e-mail inviata a {email}',
    until: 'Scadenza per la conferma: {date}.',
    cancel: 'Annulla il cambio',
    same: 'Questo è già il tuo indirizzo.',
    otherDomain:
      'Gli account di questo servizio possono avere solo indirizzi di certi domini, e questo non ne fa parte.',
    lead: 'L’indirizzo del tuo account passa da {from} a {to} quando entrambi l’hanno confermato. Allora si chiudono tutte le altre sessioni; le chiavi restano come sono.',
    confirm: 'Conferma',
    confirmed: 'Confermato. Ora apri il link dell’e-mail inviata a {email}.',
    invalid: 'Questo link non funziona',
    invalidLead:
      'Forse è scaduto, è stato sostituito da uno più recente o appartiene a un account diverso da {email}. Non è stato cambiato nulla.',
    toAccount: 'Vai al tuo account',
  },
  deletion: {
    title: 'Elimina l’account',
    lead: 'Dopo {days} giorni, durante i quali puoi cambiare idea.',
    start: 'Elimina il mio account',
    confirmTitle: 'Eliminare il tuo account?',
    wait: 'Data di eliminazione: {date}. Fino ad allora tutto continua, e puoi mantenere l’account.',
    afterwards:
      'Dopo, le sue chiavi e sessioni terminano, i suoi agenti vengono disconnessi, e il tuo nome e indirizzo vengono cancellati.',
    ledger: 'I movimenti restano, senza il tuo nome. Il saldo rimanente va perso.',
    again: 'Lo stesso indirizzo può registrarsi di nuovo, senza un altro credito di prova.',
    hint: 'Per fermare tutto subito, revoca prima le tue chiavi.',
    submit: 'Elimina il mio account ({date})',
    cancel: 'Mantieni l’account',
    pending: 'Il tuo account sarà eliminato. Data: {date}. Fino ad allora tutto continua.',
    keep: 'Mantieni il mio account',
    lastAdministrator: 'Non c’è nessun altro amministratore. Assegna prima questo ruolo a qualcun altro.',
  },
  balanceHistory: {
    title: 'Saldo degli ultimi {days} giorni',
    summary: 'Da {from} a {to}, tra {lowest} e {highest}.',
    change: 'Da {from} a {to}.',
    same: '{balance} ogni giorno.',
    columns: { day: 'Giorno (UTC)', balance: 'Saldo a fine giornata', change: 'Variazione' },
  },
  accountMails: {
    look: 'Vedi il tuo account',
    network: 'Rete',
    newAddress: 'Nuovo indirizzo',
    expires: 'Il link funziona una volta sola. Scadenza: {at}.',
    deletionRequested: {
      subject: '{product}: il tuo account sarà eliminato ({at})',
      preheader: 'Fino ad allora puoi mantenerlo.',
      heading: 'Il tuo account sarà eliminato',
      lead: 'Fino ad allora tutto continua. Dopo, le sue chiavi e sessioni terminano, e nome e indirizzo vengono cancellati. Non si può annullare. Per mantenere l’account, accedi e usa il pulsante nella pagina del tuo account.',
      deleted: 'Eliminazione',
      asked: 'Richiesta',
      unknown:
        'Se non l’hai chiesto tu, mantieni l’account, chiudi le sessioni e revoca le chiavi che non sono tue.',
    },
    oldAddress: {
      subject: '{product}: conferma il nuovo indirizzo del tuo account ({at})',
      preheader: 'Cambia quando entrambi gli indirizzi l’hanno confermato.',
      heading: 'Cambiare l’indirizzo del tuo account?',
      lead: 'Qualcuno con una sessione aperta nel tuo account ha chiesto di cambiarne l’indirizzo. Il cambio avviene quando questo indirizzo e quello nuovo l’hanno confermato. Apri il link dove hai una sessione aperta.',
      button: 'Conferma il cambio',
      unknown:
        'Se non l’hai chiesto tu, non confermare: senza il link non cambia nulla. Poi chiudi le sessioni che non sono tue.',
    },
    newAddressMail: {
      subject: '{product}: conferma che questo indirizzo è tuo ({at})',
      preheader: 'Diventa l’indirizzo di un account quando entrambi gli indirizzi l’hanno confermato.',
      heading: 'Usare questo indirizzo per il tuo account?',
      lead: 'Qualcuno ha chiesto di usare questo indirizzo per il proprio account {product}. Se l’hai chiesto tu, conferma dove hai una sessione aperta. Anche il vecchio indirizzo deve confermare.',
      button: 'Conferma l’indirizzo',
      ignore: 'Se non l’hai chiesto tu, puoi ignorare questa e-mail: senza il link non succede nulla.',
    },
    addressTaken: {
      subject: '{product}: questo indirizzo ha già un account ({at})',
      preheader: 'Qualcuno ha chiesto di usarlo per un altro account. Non è stato cambiato nulla.',
      heading: 'Questo indirizzo ha già un account',
      lead: 'Qualcuno ha chiesto di usare questo indirizzo per un altro account {product}. Non è possibile finché ha un account proprio. Non è stato cambiato nulla, e nessuno è stato informato.',
      ignore: 'Se l’hai chiesto tu, elimina prima uno dei due account. Altrimenti non devi fare nulla.',
    },
    addressChanged: {
      subject: 'Sicurezza di {product}: l’indirizzo del tuo account è stato cambiato ({at})',
      preheader: 'Con questo indirizzo non si può più accedere all’account.',
      heading: 'L’indirizzo del tuo account è stato cambiato',
      lead: 'Entrambi gli indirizzi hanno confermato il cambio. Con questo non si può più accedere all’account, e tutte le altre sessioni sono state chiuse. Le chiavi restano come sono.',
      changed: 'Cambio',
      unknown: 'Se non l’hai fatto tu, scrivi subito all’indirizzo qui sotto.',
    },
  },
} as const satisfies Translation<typeof english, 'it'>
