import type { appsTexts as english } from '../en/apps.ts'
import type { Translation } from '../text.ts'

export const appsTexts = {
  apps: {
    signInTo: 'om verder te gaan naar {app}',
    consent: {
      title: 'Toegang toestaan',
      heading: '{app} vraagt toegang tot je account',
      signedInAs: 'Je bent ingelogd als {email}.',
      other: 'Ander account gebruiken',
      list: '{app} kan dan:',
      actsAt: 'Bij {audience} handelt de app namens jou; die dienst bepaalt wat de app daar mag.',
      unchecked: 'Niemand heeft gecontroleerd wie achter deze app zit: de gegevens komen van de app zelf.',
      goesTo: 'Daarna ga je verder naar {host}.',
      later: 'Je kunt dit op elk moment intrekken op je accountpagina.',
      allow: 'Toestaan',
      deny: 'Niet toestaan',
    },
    scopes: {
      openid: 'weten dat jij het bent, aan de id van je account',
      profile: 'je naam zien',
      email: 'je e-mailadres zien',
      offline_access: 'deze toegang houden als je er niet bent, tot je die beëindigt',
      'agent:connect': 'namens jou agents met de hub verbinden',
      'agents:send': 'berichten sturen naar je verbonden agents',
      'agents:read': 'je verbonden agents bekijken en volgen',
      'account:read': 'je profiel, saldo en transacties zien',
      'account:write': 'je naam wijzigen en intrekken wat je apps hebt toegestaan',
      'keys:read': 'je sleutels bekijken en zien wanneer ze zijn gebruikt',
      'keys:write': 'je sleutels hernoemen en intrekken, en hun netwerken en limieten beperken',
      'events:read': 'de beveiligingsgebeurtenissen van je account zien',
    },
    ownScope: '‘{scope}’ gebruiken in diensten die deze scope kennen',
    account: {
      title: 'Apps met toegang',
      lead: 'Apps die je account mogen gebruiken. Trek je de toegang in, dan eindigt meteen alles wat ze hebben.',
      since: 'sinds',
      withdraw: 'Intrekken',
    },
    logout: {
      title: 'Uitloggen',
      lead: 'Wil je uitloggen?',
      leadOfApp: '{app} vraagt je om uit te loggen.',
      explained: 'Je wordt hier uitgelogd, en in de apps waarop je met deze browser bent ingelogd.',
      confirm: 'Uitloggen',
      stay: 'Ingelogd blijven',
      unusable: 'Terug naar de app',
      unusableLead: 'De app wilde hierna worden getoond, maar dit adres is niet voor de app geregistreerd.',
    },
    unusable: {
      title: 'Je kunt hier niet verder inloggen',
      lead: 'De app die je hierheen stuurde, deed een verzoek dat niet kan worden beantwoord. Ga terug naar de app en probeer het opnieuw; helpt dat niet, geef dit dan door aan de makers ervan:',
    },
    gone: {
      title: 'Hier is niets meer te doen',
      lead: 'Deze inlogpoging is al afgerond, duurde te lang of begon in een andere browser. Ga terug naar de app en begin opnieuw.',
    },
  },
} as const satisfies Translation<typeof english, 'nl'>
