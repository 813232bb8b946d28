import type { deviceTexts as english } from '../en/device.ts'
import type { Translation } from '../text.ts'

export const deviceTexts = {
  device: {
    title: 'Connecter un appareil',
    typeLead: 'Saisissez le code affiché par votre appareil ou votre terminal.',
    code: 'Code de l’appareil',
    codeHint: '8 lettres, comme WDJB-MJHT. Majuscules ou minuscules, avec ou sans tiret.',
    next: 'Continuer',
    unknownCode:
      'Aucun appareil n’affiche ce code en ce moment. Vérifiez les lettres ; un code est valable 10 minutes et fonctionne une seule fois.',
    codesRefused:
      'Trop de codes erronés ont été saisis : aucun code n’est vérifié pour le moment. Ouvrez le lien affiché par votre appareil : il fonctionne.',
    gone: 'Cette demande n’est plus valable',
    goneLead:
      'Une décision a déjà été prise, ou les 10 minutes sont écoulées. Recommencez depuis l’appareil.',
    signInAgain:
      'Pour approuver un appareil, reconnectez-vous : votre dernière connexion date de plus de 30 minutes.',
    asks: '{client} demande l’accès à votre compte',
    who: 'Programme',
    device: 'Appareil',
    claimed: '« {name} », selon l’appareil lui-même',
    unnamed: 'Il n’a pas indiqué de nom',
    from: 'Origine',
    sameNetwork: 'le même réseau que vous',
    otherNetwork: 'un autre réseau que le vôtre',
    asked: 'Demandé le',
    account: 'Votre compte',
    codeNow: 'Son code',
    mayTitle: 'Si vous approuvez, il reçoit',
    key: 'Une clé API qui expire dans les 90 jours et qui permet de :',
    access: 'L’accès à votre compte, jusqu’à ce que vous y mettiez fin, pour :',
    ownScope: 'une autorisation pour un autre service',
    compared: 'J’ai lancé cette demande, et l’appareil devant moi affiche exactement ce code.',
    comparedMissing: 'Comparez le code avec celui de votre appareil, et cochez la case s’il est identique.',
    warning:
      'Quelqu’un vous a envoyé ce lien ou ce code ? Alors refusez : approuver lui donnerait accès à votre compte.',
    approve: 'Approuver',
    deny: 'Refuser',
    approved: 'L’appareil est connecté',
    approvedLead:
      'Retournez à l’appareil : il continue de lui-même. Sa clé figure parmi vos clés API, ou sa session parmi vos sessions ; c’est là que vous pouvez y mettre fin.',
    denied: 'L’appareil a été refusé',
    deniedLead: 'Il ne reçoit rien. Si quelqu’un vous a envoyé le lien, prévenez l’exploitant du service.',
    keys: 'Voir vos clés',
  },
} as const satisfies Translation<typeof english, 'fr'>
