import type { signInTexts as english } from '../en/sign-in.ts'
import type { Translation } from '../text.ts'

export const signInTexts = {
  signIn: {
    title: 'Entrar',
    heading: 'Entrar no {product}',
    lead: 'Enviamos um link por e-mail para você entrar. Não há senha.',
    newHere: {
      open: 'Primeira vez aqui? O mesmo link cria sua conta.',
      openWithCredit: 'Primeira vez aqui? O mesmo link cria sua conta, com {credit} para experimentar.',
      domains: 'Primeira vez aqui? O mesmo link cria sua conta, se o seu endereço puder ter uma.',
      invited: 'Primeira vez aqui? Só recebe um link quem foi convidado.',
    },
    email: 'Endereço de e-mail',
    emailExample: 'ada@example.com',
    submit: 'Receber um link',
    badEmail: 'Esse não é um endereço de e-mail válido. Ele deve ser parecido com ada@example.com.',
  },
  checkMail: {
    title: 'Confira seu e-mail',
    lead: 'Um link e um código estão a caminho de {email}. Abra o link neste navegador, ou leia o e-mail onde quiser e digite o código aqui. Ambos funcionam uma única vez, por 5 minutos.',
    code: 'Código do e-mail',
    codeHint: '8 dígitos',
    submit: 'Entrar com o código',
    badCode: 'Esse código não está certo. Confira-o, use o botão do e-mail ou peça um novo.',
    codesRefused:
      'Foram digitados códigos errados demais, então nenhum código é aceito por enquanto. Use o botão do e-mail: ele funciona.',
    expired: 'Esse código expirou. Peça um novo.',
    used: 'Esse código, ou outro mais recente, já foi usado. Peça um novo.',
    resend: 'Enviar de novo',
    wait: 'Você pode enviar de novo em {time}.',
    limited: 'Foram enviados e-mails demais.',
    noNewMail:
      'Nenhum e-mail novo foi enviado: já foram demais. O último link e o último código funcionam até expirarem.',
    limitIs: 'Se você desenvolve com esta instalação: a configuração {setting} aumenta o limite.',
    wrongAddress: 'Endereço errado?',
    inbox: 'Abrir a caixa local',
    inboxElsewhere:
      'Nenhum servidor de e-mail está configurado, então os e-mails ficam na máquina que executa este serviço. Nela, este comando os mostra:',
  },
  verify: {
    title: 'Entrar',
    signingIn: 'Entrando…',
    lead: 'Continuar como {email}',
    submit: 'Entrar',
    notYou: 'Se você não pediu isso, feche a página: sem o botão, nada acontece.',
    other: 'Agora há uma sessão aberta como {email}. Entrar aqui encerra essa sessão.',
    used: 'Este link já foi usado',
    usedLead:
      'Cada link funciona uma única vez, e usar um deles cancela os outros. Se não foi você, outra pessoa consegue ler seus e-mails.',
    expired: 'Este link expirou',
    expiredLead: 'Um link funciona por 5 minutos. Veja como receber um novo:',
    invalid: 'Este link não funciona',
    invalidLead:
      'Ele pode estar cortado ou ser de outro endereço. Copie o link inteiro do e-mail ou peça um novo.',
    fresh: 'Receber um novo link',
    notOpen: 'Não há conta com este endereço',
    notOpenLead:
      'O cadastro não está aberto para ele. Se você acha que já tem uma conta, escreva para {support}.',
    suspended: 'Esta conta está suspensa',
    suspendedLead:
      'O operador do {product} suspendeu a conta: ninguém consegue entrar nela, e as chaves dela não funcionam. Nada foi excluído.',
    suspendedSubject: 'Conta suspensa: {email}',
    askSupport: 'Perguntar o motivo a {support}',
  },
} as const satisfies Translation<typeof english, 'pt'>
