import type { accountChangesTexts as english } from '../en/account-changes.ts'
import type { Translation } from '../text.ts'

export const accountChangesTexts = {
  addressChange: {
    title: 'Mudar o endereço',
    label: 'Novo endereço',
    submit: 'Mudar o endereço',
    hint: 'Um link é enviado aos dois endereços. Nada muda até que ambos confirmem.',
    pending: 'A mudança para {email} ainda espera:',
    awaits: 'o link do e-mail para {email}',
    until: 'Ela pode ser confirmada até {date}.',
    cancel: 'Cancelar a mudança',
    same: 'Esse já é o seu endereço.',
    otherDomain:
      'As contas deste serviço só podem ter endereços de certos domínios, e este não é de nenhum deles.',
    lead: 'O endereço da sua conta muda de {from} para {to} quando ambos confirmarem. Então todas as outras sessões são encerradas; as chaves continuam como estão.',
    confirm: 'Confirmar',
    confirmed: 'Confirmado. Agora abra o link do e-mail para {email}.',
    invalid: 'Este link não funciona',
    invalidLead:
      'Ele pode ter expirado, ter sido substituído por um mais recente ou ser de outra conta que não {email}. Nada foi alterado.',
    toAccount: 'Ir para a sua conta',
  },
  deletion: {
    title: 'Excluir a conta',
    lead: 'Depois de {days} dias, em que você pode mudar de ideia.',
    start: 'Excluir minha conta',
    confirmTitle: 'Excluir sua conta?',
    wait: 'Até {date} tudo continua igual, e você pode manter a conta.',
    afterwards:
      'Depois disso, as chaves e sessões dela são encerradas, os agentes são desconectados, e seu nome e endereço são apagados.',
    ledger: 'O extrato é mantido, sem o seu nome. O saldo que restar se perde.',
    again: 'O mesmo endereço pode se cadastrar de novo, sem outro crédito de teste.',
    hint: 'Para parar tudo na hora, revogue antes suas chaves.',
    submit: 'Excluir minha conta em {date}',
    cancel: 'Manter a conta',
    pending: 'Sua conta será excluída em {date}. Até lá, tudo continua igual.',
    keep: 'Manter minha conta',
    lastAdministrator: 'Não há nenhum outro administrador. Antes, dê essa função a outra pessoa.',
  },
  balanceHistory: {
    title: 'Saldo nos últimos {days} dias',
    summary: 'De {from} para {to}, entre {lowest} e {highest}.',
    columns: { day: 'Dia (UTC)', balance: 'Saldo no fim do dia', change: 'Variação' },
  },
  accountMails: {
    look: 'Ver sua conta',
    network: 'Rede',
    newAddress: 'Novo endereço',
    expires: 'O link expira em {at} e funciona uma única vez.',
    deletionRequested: {
      subject: '{product}: sua conta será excluída em {at}',
      preheader: 'Até lá, você pode mantê-la.',
      heading: 'Sua conta será excluída',
      lead: 'Até lá, tudo continua igual. Depois, as chaves e sessões dela são encerradas, e o nome e o endereço são apagados. Isso não pode ser desfeito. Para manter a conta, entre e use o botão na página da sua conta.',
      deleted: 'Exclusão',
      asked: 'Pedido',
      unknown: 'Se não foi você, mantenha a conta, encerre as sessões e revogue as chaves que não são suas.',
    },
    oldAddress: {
      subject: '{product}: confirme o novo endereço da sua conta ({at})',
      preheader: 'Ele muda quando os dois endereços confirmarem.',
      heading: 'Mudar o endereço da sua conta?',
      lead: 'Alguém com uma sessão aberta na sua conta pediu para mudar o endereço dela. A mudança acontece quando este endereço e o novo confirmarem. Abra o link onde você tem uma sessão aberta.',
      button: 'Confirmar a mudança',
      unknown:
        'Se não foi você, não confirme: sem o link, nada muda. Depois, encerre as sessões que não são suas.',
    },
    newAddressMail: {
      subject: '{product}: confirme que este endereço é seu ({at})',
      preheader: 'Ele se torna o endereço de uma conta quando os dois endereços confirmarem.',
      heading: 'Usar este endereço na sua conta?',
      lead: 'Alguém pediu para usar este endereço na própria conta do {product}. Se foi você, confirme onde você tem uma sessão aberta. O endereço antigo também precisa confirmar.',
      button: 'Confirmar o endereço',
      ignore: 'Se você não pediu isso, pode ignorar este e-mail: sem o link, nada acontece.',
    },
    addressTaken: {
      subject: '{product}: este endereço já tem uma conta ({at})',
      preheader: 'Alguém pediu para usá-lo em outra conta. Nada foi alterado.',
      heading: 'Este endereço já tem uma conta',
      lead: 'Alguém pediu para usar este endereço em outra conta do {product}. Isso não é possível enquanto ele tiver a própria conta. Nada foi alterado, e ninguém foi informado.',
      ignore: 'Se foi você, exclua antes uma das duas contas. Se não foi, não há nada a fazer.',
    },
    addressChanged: {
      subject: 'Segurança do {product}: o endereço da sua conta foi alterado ({at})',
      preheader: 'Não é mais possível entrar nela com este endereço.',
      heading: 'O endereço da sua conta foi alterado',
      lead: 'Os dois endereços confirmaram a mudança. Não é mais possível entrar na conta com este, e todas as outras sessões foram encerradas. As chaves continuam como estão.',
      changed: 'Mudança',
      unknown: 'Se não foi você, escreva imediatamente para o endereço abaixo.',
    },
  },
} as const satisfies Translation<typeof english, 'pt'>
