import type { accountChangesTexts as english } from '../en/account-changes.ts'
import type { Translation } from '../text.ts'

export const accountChangesTexts = {
  addressChange: {
    title: 'Adres wijzigen',
    label: 'Nieuw adres',
    submit: 'Adres wijzigen',
    hint: 'Beide adressen krijgen een link. Er verandert niets tot beide hebben bevestigd.',
    pending: 'De wijziging naar {email} wacht nog op:',
    awaits: 'de link in de mail aan {email}',
    until: 'Bevestigen kan tot {date}.',
    cancel: 'Wijziging annuleren',
    same: 'Dat is al je adres.',
    otherDomain: 'Accounts hebben hier alleen adressen van bepaalde domeinen, en dit hoort daar niet bij.',
    lead: 'Het adres van je account verandert van {from} in {to} zodra beide hebben bevestigd. Dan eindigen alle andere sessies; sleutels blijven zoals ze zijn.',
    confirm: 'Bevestigen',
    confirmed: 'Bevestigd. Open nu de link in de mail aan {email}.',
    invalid: 'Deze link werkt niet',
    invalidLead:
      'Misschien is hij verlopen of vervangen door een nieuwere, of hoort hij bij een ander account dan {email}. Er is niets gewijzigd.',
    toAccount: 'Naar je account',
  },
  deletion: {
    title: 'Account verwijderen',
    lead: 'Na {days} dagen, waarin je je kunt bedenken.',
    start: 'Mijn account verwijderen',
    confirmTitle: 'Je account verwijderen?',
    goes: 'Wat daarmee eindigt',
    activeKeys: 'Actieve sleutels',
    wait: 'Tot {date} gaat alles door en kun je het account behouden.',
    afterwards:
      'Daarna eindigen de sleutels en sessies, worden de agents losgekoppeld en worden je naam en adres gewist.',
    ledger: 'De transacties blijven bewaard, zonder je naam. Wat er nog op het saldo staat, vervalt.',
    again: 'Met hetzelfde adres kun je opnieuw een account aanmaken, maar zonder nieuw proeftegoed.',
    hint: 'Wil je alles meteen stoppen, {revokeKeys}.',
    revokeKeys: 'trek dan eerst je sleutels in',
    submit: 'Mijn account verwijderen op {date}',
    cancel: 'Behouden',
    pending: 'Je account wordt op {date} verwijderd. Tot dan gaat alles door.',
    keep: 'Mijn account behouden',
    lastAdministrator: 'Je bent de laatste administrator. Maak eerst iemand anders administrator.',
  },
  balanceHistory: {
    title: 'Saldo in de afgelopen {days} dagen',
    summary: 'Van {from} naar {to}, tussen {lowest} en {highest}.',
    change: 'Van {from} naar {to}.',
    same: '{balance} op elke dag.',
    columns: { day: 'Dag (UTC)', balance: 'Saldo aan het eind', change: 'Verandering' },
  },
  accountMails: {
    look: 'Je account bekijken',
    network: 'Netwerk',
    newAddress: 'Nieuw adres',
    expires: 'De link verloopt op {at} en werkt één keer.',
    deletionRequested: {
      subject: '{product}: je account wordt verwijderd op {at}',
      preheader: 'Tot dan kun je het behouden.',
      heading: 'Je account wordt verwijderd',
      lead: 'Tot {at} gaat alles door. Daarna eindigen de sleutels en sessies en worden naam en adres gewist. Dat kan niet ongedaan worden gemaakt. Wil je het account behouden, log dan in en gebruik de knop op je accountpagina.',
      deleted: 'Wordt verwijderd',
      asked: 'Aangevraagd',
      unknown:
        'Was jij dit niet? Behoud dan het account, beëindig de sessies en trek de sleutels in die niet van jou zijn.',
    },
    oldAddress: {
      subject: '{product}: bevestig het nieuwe adres van je account ({at})',
      preheader: 'Het verandert zodra beide adressen hebben bevestigd.',
      heading: 'Het adres van je account wijzigen?',
      lead: 'Iemand die op je account is ingelogd, wil het adres ervan wijzigen. Het verandert zodra dit adres en het nieuwe hebben bevestigd. Open de link waar je bent ingelogd.',
      button: 'Wijziging bevestigen',
      unknown:
        'Was jij dit niet? Bevestig dan niet: zonder de link verandert er niets. Beëindig daarna de sessies die niet van jou zijn.',
    },
    newAddressMail: {
      subject: '{product}: bevestig dat dit adres van jou is ({at})',
      preheader: 'Het wordt het adres van een account zodra beide adressen hebben bevestigd.',
      heading: 'Dit adres voor je account gebruiken?',
      lead: 'Iemand wil dit adres gebruiken voor een account bij {product}. Was jij dat, bevestig het dan waar je bent ingelogd. Het oude adres moet het ook bevestigen.',
      button: 'Adres bevestigen',
      ignore:
        'Heb je hier niet om gevraagd? Dan kun je deze e-mail negeren: zonder de link gebeurt er niets.',
    },
    addressTaken: {
      subject: '{product}: dit adres heeft al een account ({at})',
      preheader: 'Iemand wilde het voor een ander account gebruiken. Er is niets gewijzigd.',
      heading: 'Dit adres heeft al een account',
      lead: 'Iemand wilde dit adres gebruiken voor een ander account bij {product}. Dat kan niet zolang het een eigen account heeft. Er is niets gewijzigd en niemand heeft bericht gekregen.',
      ignore:
        'Was jij het, verwijder dan eerst een van de twee accounts. Zo niet, dan hoef je niets te doen.',
    },
    addressChanged: {
      subject: '{product}-beveiliging: het adres van je account is gewijzigd ({at})',
      preheader: 'Met dit adres kun je er niet meer op inloggen.',
      heading: 'Het adres van je account is gewijzigd',
      lead: 'Beide adressen hebben de wijziging bevestigd. Met dit adres kun je niet meer op het account inloggen, en alle andere sessies zijn beëindigd. Sleutels blijven zoals ze zijn.',
      button: 'Schrijf naar de support',
      changed: 'Gewijzigd',
      unknown: 'Was jij dit niet? Schrijf dan meteen naar support.',
    },
  },
} as const satisfies Translation<typeof english, 'nl'>
