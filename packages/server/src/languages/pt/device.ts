import type { deviceTexts as english } from '../en/device.ts'
import type { Translation } from '../text.ts'

export const deviceTexts = {
  device: {
    title: 'Conectar um dispositivo',
    typeLead: 'Digite o código que aparece no seu dispositivo ou terminal.',
    code: 'Código do dispositivo',
    codeHint: '8 letras, como WDJB-MJHT. Maiúsculas ou minúsculas, com ou sem hífen.',
    next: 'Continuar',
    unknownCode:
      'Nenhum dispositivo mostra este código agora. Confira as letras; um código vale por 10 minutos e funciona uma única vez.',
    codesRefused:
      'Foram digitados códigos errados demais, então nenhum é verificado por enquanto. Abra o link que aparece no seu dispositivo: ele funciona.',
    gone: 'Este pedido não vale mais',
    goneLead: 'Ele já foi decidido, ou os 10 minutos passaram. Comece de novo no dispositivo.',
    signInAgain: 'Para aprovar um dispositivo, entre de novo: a última vez foi há mais de 30 minutos.',
    asks: '{client} pede acesso à sua conta',
    who: 'Programa',
    device: 'Dispositivo',
    claimed: '“{name}”, segundo o próprio dispositivo',
    unnamed: 'Não informou um nome',
    from: 'Origem',
    sameNetwork: 'a mesma rede em que você está',
    otherNetwork: 'uma rede diferente da sua',
    asked: 'Pedido em',
    account: 'Sua conta',
    codeNow: 'Código dele',
    mayTitle: 'Se você aprovar, ele recebe',
    key: 'Uma chave de API que expira em até 90 dias e que permite:',
    access: 'Acesso à sua conta, até que você o encerre, para:',
    ownScope: 'uma permissão de outro serviço',
    compared: 'Fui eu que iniciei isto, e o dispositivo à minha frente mostra exatamente este código.',
    comparedMissing: 'Compare o código com o do seu dispositivo e marque a caixa se for o mesmo.',
    warning:
      'Alguém enviou este link ou código a você? Então recuse: aprovar daria a essa pessoa acesso à sua conta.',
    approve: 'Aprovar',
    deny: 'Recusar',
    approved: 'O dispositivo está conectado',
    approvedLead:
      'Volte ao dispositivo: ele continua sozinho. A chave dele está entre suas chaves de API, ou a sessão dele entre suas sessões; lá você pode encerrá-la.',
    denied: 'O dispositivo foi recusado',
    deniedLead: 'Ele não recebe nada. Se alguém enviou o link a você, avise o operador do serviço.',
    keys: 'Ver suas chaves',
  },
} as const satisfies Translation<typeof english, 'pt'>
