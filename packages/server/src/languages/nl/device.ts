import type { deviceTexts as english } from '../en/device.ts'
import type { Translation } from '../text.ts'

export const deviceTexts = {
  device: {
    title: 'Een apparaat verbinden',
    typeLead: 'Typ de code die je apparaat of terminal toont.',
    code: 'Code op het apparaat',
    codeHint: '8 letters, zoals WDJB-MJHT. Hoofdletters of kleine letters, met of zonder streepje.',
    next: 'Verder',
    unknownCode:
      'Geen enkel apparaat toont nu deze code. Controleer de letters; een code is 10 minuten geldig en werkt één keer.',
    codesRefused:
      'Er zijn te veel verkeerde codes ingevoerd, dus voorlopig wordt geen code gecontroleerd. Open de link die je apparaat toont: die werkt.',
    gone: 'Dit verzoek is voorbij',
    goneLead: 'Er is al over beslist, of de 10 minuten zijn om. Begin opnieuw op het apparaat.',
    signInAgain:
      'Log opnieuw in om een apparaat goed te keuren: je hebt meer dan 30 minuten geleden voor het laatst ingelogd.',
    asks: '{client} vraagt toegang tot je account',
    who: 'Programma',
    device: 'Apparaat',
    claimed: '‘{name}’, zoals het zichzelf noemt',
    unnamed: 'Het gaf geen naam op',
    from: 'Vraagt vanaf',
    sameNetwork: 'het netwerk waar jij ook op zit',
    otherNetwork: 'niet het netwerk waar jij op zit',
    asked: 'Gevraagd',
    account: 'Je account',
    codeNow: 'De code',
    mayTitle: 'Als je goedkeurt, krijgt het',
    key: 'Eén API-sleutel die binnen 90 dagen verloopt en dit mag:',
    access: 'Toegang tot je account, tot je die beëindigt. Het kan dan:',
    ownScope: 'een recht voor een andere dienst hier',
    compared: 'Ik ben dit zelf begonnen, en het apparaat voor me toont precies deze code.',
    comparedMissing: 'Vergelijk de code met die op je apparaat, en zet een vinkje als ze gelijk zijn.',
    warning:
      'Heeft iemand je deze link of code gestuurd? Weiger dan: met je goedkeuring geef je je account weg.',
    approve: 'Goedkeuren',
    deny: 'Weigeren',
    approved: 'Het apparaat is verbonden',
    approvedLead:
      'Ga ernaar terug: het gaat vanzelf verder. De sleutel staat bij je API-sleutels of de sessie bij je sessies; daar kun je de toegang beëindigen.',
    denied: 'Het apparaat is geweigerd',
    deniedLead: 'Het krijgt niets. Heeft iemand je de link gestuurd, meld dat dan bij je beheerder.',
    keys: 'Je sleutels bekijken',
  },
} as const satisfies Translation<typeof english, 'nl'>
