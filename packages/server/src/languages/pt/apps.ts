import type { appsTexts as english } from '../en/apps.ts'
import type { Translation } from '../text.ts'

export const appsTexts = {
  apps: {
    signInTo: 'para continuar em {app}',
    consent: {
      title: 'Permitir acesso',
      heading: '{app} pede acesso à sua conta',
      signedInAs: 'Você entrou como {email}.',
      other: 'Usar outra conta',
      list: '{app} poderá:',
      actsAt: 'Em {audience}, o app agirá em seu nome, e esse serviço decide o que ele pode fazer lá.',
      unchecked: 'Ninguém verificou quem mantém este app: ele mesmo se descreveu.',
      goesTo: 'Depois você segue para {host}.',
      later: 'Você pode retirar este acesso a qualquer momento na página da sua conta.',
      allow: 'Permitir',
      deny: 'Não permitir',
    },
    scopes: {
      openid: 'saber que é você, pelo identificador da sua conta',
      profile: 'ver seu nome',
      email: 'ver seu endereço de e-mail',
      offline_access: 'manter este acesso enquanto você está ausente, até que você o encerre',
      'agent:connect': 'conectar agentes ao hub em seu nome',
      'agents:send': 'enviar mensagens aos seus agentes conectados',
      'agents:read': 'listar e acompanhar seus agentes conectados',
      'account:read': 'ver seu perfil, seu saldo e seu extrato',
      'account:write': 'alterar seu nome e retirar o que você permitiu a apps',
      'keys:read': 'listar suas chaves e ver quando foram usadas',
      'keys:write': 'renomear e revogar suas chaves, e restringir suas redes e seus limites',
      'events:read': 'ver os eventos de segurança da sua conta',
    },
    ownScope: 'usar “{scope}” em serviços que o reconhecem',
    account: {
      title: 'Apps com acesso',
      lead: 'Apps a que você deu acesso à sua conta. Se você o retirar, eles perdem o acesso na hora.',
      since: 'desde',
      withdraw: 'Retirar',
    },
    logout: {
      title: 'Sair',
      lead: 'Quer sair da sua conta?',
      leadOfApp: '{app} pede que você saia da sua conta.',
      explained: 'Você sai aqui e nos apps em que entrou a partir deste navegador.',
      confirm: 'Sair',
      stay: 'Não sair',
      unusable: 'Voltar ao app',
      unusableLead: 'O app pediu o retorno a um endereço que não está registrado para ele.',
    },
    unusable: {
      title: 'Não é possível continuar',
      lead: 'O app que enviou você até aqui fez um pedido que não pode ser respondido. Volte a ele e tente de novo; se não adiantar, informe isto a quem o mantém:',
    },
    gone: {
      title: 'Não há nada pendente aqui',
      lead: 'Este acesso já foi concluído, demorou demais ou começou em outro navegador. Volte ao app e comece de novo.',
    },
  },
} as const satisfies Translation<typeof english, 'pt'>
