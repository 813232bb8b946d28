import type { listsTexts as english } from '../en/lists.ts'
import type { Translation } from '../text.ts'

export const listsTexts = {
  keyList: {
    search: 'Buscar',
    searchExample: 'Nome, início da chave ou ID',
    sort: 'Ordenar por',
    sorts: { created: 'Mais recentes', name: 'Nome', used: 'Último uso', expires: 'Validade mais próxima' },
    none: 'Nenhuma chave corresponde à busca.',
    found: { one: '{count} chave', many: '{count} de chaves', other: '{count} chaves' },
    window: 'Somente entre as {count} chaves mais recentes.',
    windowOlder: 'Buscar em chaves mais antigas',
    next: 'Próxima página',
    previous: 'Página anterior',
    range: '{from}–{to} de {total}',
    select: 'Selecionar {name}',
    selectAll: 'Selecionar todas desta página',
    selected: 'Selecionadas: {count}',
    revoke: 'Revogar as chaves selecionadas',
    revokeTitle: {
      one: 'Revogar {count} chave?',
      many: 'Revogar {count} de chaves?',
      other: 'Revogar {count} chaves?',
    },
    revokeNow: {
      one: 'Revogar esta chave',
      many: 'Revogar estas {count} de chaves',
      other: 'Revogar estas {count} chaves',
    },
    noneSelected: 'Selecione pelo menos uma chave ativa.',
  },
  eventList: {
    lead: 'O que aconteceu na sua conta. Guardado por {days} dias.',
    all: 'Todos os eventos',
    filter: 'Filtrar por assunto',
    groups: {
      sign_ins: 'Entradas',
      keys: 'Chaves',
      account: 'Conta',
      apps: 'Apps',
      support: 'Suporte',
    },
    ofKey: 'Somente os da chave {name}.',
    everyKey: 'Mostrar os de todas as chaves',
    empty: 'Nenhum evento deste tipo.',
    newest: 'Eventos mais recentes',
    older: 'Eventos mais antigos',
    export: 'Todos estes em um arquivo:',
    session: 'Sessão: {client}',
    byOperator: 'pelo operador',
    pages: 'Mais eventos',
  },
} as const satisfies Translation<typeof english, 'pt'>
