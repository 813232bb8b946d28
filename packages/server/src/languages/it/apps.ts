import type { appsTexts as english } from '../en/apps.ts'
import type { Translation } from '../text.ts'

export const appsTexts = {
  apps: {
    signInTo: 'per continuare su {app}',
    consent: {
      title: 'Consenti l’accesso',
      heading: '{app} chiede l’accesso al tuo account',
      signedInAs: 'Hai effettuato l’accesso come {email}.',
      other: 'Usa un altro account',
      list: '{app} potrà:',
      actsAt: 'Presso {audience} agirà a tuo nome, e quel servizio decide che cosa può fare.',
      unchecked: 'Nessuno ha verificato chi gestisce questa app: si è descritta da sola.',
      goesTo: 'Poi prosegui su {host}.',
      later: 'Puoi ritirare questo accesso in qualsiasi momento dalla pagina del tuo account.',
      allow: 'Consenti',
      deny: 'Non consentire',
    },
    scopes: {
      openid: 'sapere che sei tu, dall’identificativo del tuo account',
      profile: 'vedere il tuo nome',
      email: 'vedere il tuo indirizzo e-mail',
      offline_access: 'mantenere questo accesso mentre non ci sei, finché non lo ritiri',
      'agent:connect': 'connettere agenti all’hub a tuo nome',
      'agents:send': 'inviare messaggi ai tuoi agenti connessi',
      'agents:read': 'elencare e seguire i tuoi agenti connessi',
      'account:read': 'vedere il tuo profilo, il saldo e i movimenti',
      'account:write': 'cambiare il tuo nome e ritirare ciò che hai concesso alle app',
      'keys:read': 'elencare le tue chiavi e vedere quando sono state usate',
      'keys:write': 'rinominare e revocare le tue chiavi, e restringerne reti e limiti',
      'events:read': 'vedere gli eventi di sicurezza del tuo account',
    },
    ownScope: 'usare «{scope}» nei servizi che lo riconoscono',
    account: {
      title: 'App con accesso',
      lead: 'App a cui hai dato accesso al tuo account. Se lo ritiri, lo perdono subito.',
      since: 'Concesso:',
      withdraw: 'Ritira',
    },
    logout: {
      title: 'Esci',
      lead: 'Vuoi uscire?',
      leadOfApp: '{app} ti chiede di uscire.',
      explained: 'Esci qui e dalle app a cui hai effettuato l’accesso da questo browser.',
      confirm: 'Esci',
      stay: 'Non uscire',
      unusable: 'Torna all’app',
      unusableLead: 'L’app ha chiesto di tornare a un indirizzo che non è registrato per essa.',
    },
    unusable: {
      title: 'Questo accesso non può continuare',
      lead: 'L’app che ti ha inviato qui ha fatto una richiesta a cui non si può rispondere. Torna all’app e riprova; se non basta, riferisci questo a chi la gestisce:',
    },
    gone: {
      title: 'Qui non c’è nulla in attesa',
      lead: 'Questo accesso è già stato completato, è durato troppo o è iniziato in un altro browser. Torna all’app e ricomincia.',
    },
  },
} as const satisfies Translation<typeof english, 'it'>
