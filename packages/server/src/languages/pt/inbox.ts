import type { inboxTexts as english } from '../en/inbox.ts'
import type { Translation } from '../text.ts'

export const inboxTexts = {
  inbox: {
    title: 'Caixa local',
    lead: 'Nenhum servidor de e-mail está configurado, então os e-mails ficam nesta máquina, por um dia.',
    empty: 'Ainda não há e-mails',
    emptyLead: 'Peça um link para entrar: ele chega aqui sozinho.',
    arrived: 'Chegaram novos e-mails.',
    search: 'Buscar',
    searchExample: 'Endereço, assunto ou texto',
    notFound: 'Nenhum e-mail corresponde à busca',
    hidden: {
      one: '{count} e-mail mais antigo não é mostrado; uma busca o encontra.',
      many: '{count} de e-mails mais antigos não são mostrados; uma busca os encontra.',
      other: '{count} e-mails mais antigos não são mostrados; uma busca os encontra.',
    },
    open: 'Abrir link',
    copyCode: 'Copiar código',
    spent: 'Usado ou expirado',
    view: 'Visualização',
    html: 'HTML',
    text: 'Texto',
    source: 'Código-fonte',
    noSource: 'Este e-mail foi guardado por uma versão anterior, sem o código-fonte.',
    back: 'Todos os e-mails',
    to: 'Para',
  },
} as const satisfies Translation<typeof english, 'pt'>
