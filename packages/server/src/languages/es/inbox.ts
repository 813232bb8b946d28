import type { inboxTexts as english } from '../en/inbox.ts'
import type { Translation } from '../text.ts'

export const inboxTexts = {
  inbox: {
    title: 'Buzón local',
    lead: 'No hay ningún servidor de correo configurado, así que los correos se quedan un día en esta máquina.',
    empty: 'Aún no hay correos',
    emptyLead: 'Pide un enlace para iniciar sesión: llegará aquí automáticamente.',
    arrived: 'Ha llegado correo nuevo.',
    search: 'Buscar',
    searchExample: 'Dirección, asunto o texto',
    notFound: 'Ningún correo coincide con la búsqueda',
    hidden: {
      one: 'No se muestra {count} correo más antiguo; búscalo para encontrarlo.',
      many: 'No se muestran {count} de correos más antiguos; búscalos para encontrarlos.',
      other: 'No se muestran {count} correos más antiguos; búscalos para encontrarlos.',
    },
    open: 'Abrir enlace',
    copyCode: 'Copiar código',
    spent: 'Usado o caducado',
    view: 'Vista',
    html: 'HTML',
    text: 'Texto',
    source: 'Código fuente',
    noSource: 'Este correo lo guardó una versión anterior, sin su código fuente.',
    back: 'Todos los correos',
    to: 'Para',
  },
} as const satisfies Translation<typeof english, 'es'>
