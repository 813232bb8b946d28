import type { docsTexts as english } from '../en/docs.ts'
import type { Translation } from '../text.ts'

export const docsTexts = {
  docs: {
    title: 'Documentação',
    menu: 'Sumário',
    guides: 'Guias',
    reference: 'Referência da API',
    operators: 'Para operadores',
    onThisPage: 'Nesta página',
    search: 'Buscar',
    searchFor: 'Buscar na documentação',
    found: {
      one: '{count} resultado para “{query}”',
      many: '{count} de resultados para “{query}”',
      other: '{count} resultados para “{query}”',
    },
    notFound: 'Nenhum resultado para “{query}”',
    notFoundLead: 'Tente menos palavras, ou outras.',
    languages: 'Linguagem do exemplo',
    path: 'Caminho',
    query: 'Parâmetros de consulta',
    headers: 'Cabeçalhos',
    body: 'Corpo',
    required: 'obrigatório',
    example: 'Exemplo',
    answers: 'Respostas',
    errors: 'Erros',
    code: 'Código',
    status: 'Status',
    meaning: 'Significado',
    whatToDo: 'O que fazer',
    tryIt: 'Experimentar',
    tryLead:
      'O serviço faz esta chamada em seu nome, com seus direitos e limites. O que ela alterar fica alterado de verdade.',
    trySignIn: 'Entre para fazer esta chamada aqui.',
    send: 'Enviar',
    answer: 'Resposta {status}',
    answerCut: 'O restante da resposta não é mostrado.',
  },
} as const satisfies Translation<typeof english, 'pt'>
