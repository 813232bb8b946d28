import type { listsTexts as english } from '../en/lists.ts'
import type { Translation } from '../text.ts'

export const listsTexts = {
  keyList: {
    search: 'Buscar',
    searchExample: 'Nombre, inicio de la clave o ID',
    sort: 'Ordenar por',
    sorts: {
      created: 'Más recientes',
      name: 'Nombre',
      used: 'Último uso',
      expires: 'Expiración más próxima',
    },
    none: 'Ninguna clave coincide con la búsqueda.',
    found: { one: '{count} clave', many: '{count} de claves', other: '{count} claves' },
    window: 'Solo entre las {count} claves más recientes.',
    windowOlder: 'Buscar en claves anteriores',
    next: 'Página siguiente',
    previous: 'Página anterior',
    range: '{from}–{to} de {total}',
    select: 'Seleccionar {name}',
    selectAll: 'Seleccionar todas las de esta página',
    selected: 'Seleccionadas: {count}',
    revoke: 'Revocar las claves seleccionadas',
    revokeTitle: {
      one: '¿Revocar {count} clave?',
      many: '¿Revocar {count} de claves?',
      other: '¿Revocar {count} claves?',
    },
    revokeNow: {
      one: 'Revocar esta clave',
      many: 'Revocar estas {count} de claves',
      other: 'Revocar estas {count} claves',
    },
    noneSelected: 'Selecciona al menos una clave activa.',
  },
  eventList: {
    lead: 'Lo que ha ocurrido en tu cuenta. Se conserva {days} días.',
    all: 'Todos los eventos',
    filter: 'Filtrar por tema',
    groups: {
      sign_ins: 'Inicios de sesión',
      keys: 'Claves',
      account: 'Cuenta',
      apps: 'Aplicaciones',
      support: 'Soporte',
    },
    ofKey: 'Solo los de la clave {name}.',
    everyKey: 'Mostrar los de todas las claves',
    empty: 'No hay ningún evento de este tipo.',
    newest: 'Eventos más recientes',
    older: 'Eventos anteriores',
    export: 'Todos estos en un archivo:',
    session: 'Sesión: {client}',
    byOperator: 'por el operador',
    pages: 'Más eventos',
  },
} as const satisfies Translation<typeof english, 'es'>
