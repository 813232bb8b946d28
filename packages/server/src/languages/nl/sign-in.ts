import type { signInTexts as english } from '../en/sign-in.ts'
import type { Translation } from '../text.ts'

export const signInTexts = {
  signIn: {
    title: 'Inloggen',
    heading: 'Inloggen bij {product}',
    lead: 'We mailen je een link waarmee je inlogt. Een wachtwoord is niet nodig.',
    newHere: {
      open: 'Nieuw hier? Met dezelfde link maak je je account aan.',
      openWithCredit:
        'Nieuw hier? Met dezelfde link maak je je account aan, met {credit} om het uit te proberen.',
      domains:
        'Nieuw hier? Met dezelfde link maak je je account aan, als je adres daarvoor in aanmerking komt.',
      invited: 'Nieuw hier? Alleen wie is uitgenodigd, krijgt een link.',
    },
    email: 'E-mailadres',
    emailExample: 'ada@example.com',
    submit: 'Stuur me een link',
    badEmail: 'Dat is geen geldig e-mailadres. Het moet eruitzien als ada@example.com.',
  },
  checkMail: {
    title: 'Kijk in je mail',
    lead: 'Er zijn een link en een code onderweg naar {email}. Open de link in deze browser, of lees de mail waar je wilt en typ de code hier. Beide werken één keer, binnen 5 minuten.',
    code: 'Code uit de mail',
    codeHint: '8 cijfers',
    submit: 'Inloggen met de code',
    badCode: 'Die code klopt niet. Controleer hem, gebruik de knop in de mail of laat een nieuwe sturen.',
    codesRefused:
      'Er zijn te veel verkeerde codes ingevoerd, dus voorlopig wordt geen code geaccepteerd. Gebruik de knop in de mail: die werkt.',
    expired: 'Die code is verlopen. Laat een nieuwe sturen.',
    used: 'Die code, of een latere, is al gebruikt. Laat een nieuwe sturen.',
    resend: 'Opnieuw sturen',
    wait: 'Opnieuw sturen kan over {time}.',
    limited: 'Er zijn te veel mails gestuurd.',
    noNewMail:
      'Er is geen nieuwe mail gestuurd: het waren er te veel. De laatste link en code werken nog tot ze verlopen.',
    limitIs: 'Ontwikkel je met deze installatie: de instelling {setting} verhoogt de limiet.',
    wrongAddress: 'Verkeerd adres?',
    inbox: 'Lokale inbox openen',
    inboxElsewhere:
      'Er is geen mailserver ingesteld, dus mails blijven op de machine waarop deze dienst draait. Daar laat dit commando ze zien:',
  },
  verify: {
    title: 'Inloggen',
    signingIn: 'Je wordt ingelogd…',
    lead: 'Doorgaan als {email}',
    submit: 'Inloggen',
    notYou: 'Heb je hier niet om gevraagd? Sluit dan de pagina: zonder de knop gebeurt er niets.',
    other: 'Je bent nu ingelogd als {email}. Als je hier inlogt, eindigt die sessie.',
    used: 'Deze link is al gebruikt',
    usedLead:
      'Elke link werkt één keer, en zodra je er een gebruikt, vervallen de andere. Was jij het niet, dan kan iemand anders je mail lezen.',
    expired: 'Deze link is verlopen',
    expiredLead: 'Een link werkt 5 minuten. Zo krijg je een nieuwe:',
    invalid: 'Deze link werkt niet',
    invalidLead:
      'Misschien is hij afgekapt of voor een ander adres gemaakt. Kopieer de hele link uit de mail, of vraag een nieuwe aan.',
    fresh: 'Stuur me een nieuwe link',
    notOpen: 'Geen account voor dit adres',
    notOpenLead:
      'Met dit adres kun je je niet registreren. Hoor je een account te hebben, schrijf dan naar {support}.',
    suspended: 'Dit account is geblokkeerd',
    suspendedLead:
      'De beheerder van {product} heeft het geblokkeerd. Niemand kan erop inloggen en de sleutels werken niet. Er is niets verwijderd.',
    suspendedSubject: 'Geblokkeerd account {email}',
    askSupport: 'Vraag {support} waarom',
  },
} as const satisfies Translation<typeof english, 'nl'>
