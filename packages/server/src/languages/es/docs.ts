import type { docsTexts as english } from '../en/docs.ts'
import type { Translation } from '../text.ts'

export const docsTexts = {
  docs: {
    title: 'Documentación',
    menu: 'Índice',
    guides: 'Guías',
    reference: 'Referencia de la API',
    operators: 'Para operadores',
    onThisPage: 'En esta página',
    search: 'Buscar',
    searchFor: 'Buscar en la documentación',
    found: {
      one: '{count} resultado para «{query}»',
      many: '{count} de resultados para «{query}»',
      other: '{count} resultados para «{query}»',
    },
    notFound: 'No hay resultados para «{query}»',
    notFoundLead: 'Prueba con menos palabras, o con otras.',
    languages: 'Lenguaje del ejemplo',
    path: 'Ruta',
    query: 'Parámetros de consulta',
    headers: 'Encabezados',
    body: 'Cuerpo',
    required: 'obligatorio',
    example: 'Ejemplo',
    answers: 'Respuestas',
    errors: 'Errores',
    code: 'Código',
    status: 'Estado',
    meaning: 'Significado',
    whatToDo: 'Qué hacer',
    tryIt: 'Probar',
    tryLead:
      'El servicio hace esta llamada en tu nombre, con tus derechos y límites. Lo que cambie queda cambiado de verdad.',
    trySignIn: 'Inicia sesión para hacer esta llamada aquí.',
    send: 'Enviar',
    answer: 'Respuesta {status}',
    answerCut: 'El resto de la respuesta no se muestra.',
  },
} as const satisfies Translation<typeof english, 'es'>
