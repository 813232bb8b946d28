import type { appsTexts as english } from '../en/apps.ts'
import type { Translation } from '../text.ts'

export const appsTexts = {
  apps: {
    signInTo: 'para continuar en {app}',
    consent: {
      title: 'Permitir acceso',
      heading: '{app} pide acceso a tu cuenta',
      signedInAs: 'Has iniciado sesión como {email}.',
      other: 'Usar otra cuenta',
      list: '{app} podrá:',
      actsAt: 'Ante {audience} actuará en tu nombre, y ese servicio decide qué puede hacer allí.',
      unchecked: 'Nadie ha comprobado quién está detrás de esta aplicación: se describió a sí misma.',
      goesTo: 'Después continúas en {host}.',
      later: 'Puedes retirar este acceso en cualquier momento en la página de tu cuenta.',
      allow: 'Permitir',
      deny: 'No permitir',
    },
    scopes: {
      openid: 'saber que eres tú, por el identificador de tu cuenta',
      profile: 'ver tu nombre',
      email: 'ver tu dirección de correo',
      offline_access: 'conservar este acceso mientras no estás, hasta que le pongas fin',
      'agent:connect': 'conectar agentes al hub en tu nombre',
      'agents:send': 'enviar mensajes a tus agentes conectados',
      'agents:read': 'ver la lista y el estado de tus agentes conectados',
      'account:read': 'ver tu perfil, tu saldo y tus movimientos',
      'account:write': 'cambiar tu nombre y retirar lo que permitiste a aplicaciones',
      'keys:read': 'ver tus claves y cuándo se usaron',
      'keys:write': 'cambiar el nombre de tus claves, revocarlas y restringir sus redes y límites',
      'events:read': 'ver los eventos de seguridad de tu cuenta',
    },
    ownScope: 'usar «{scope}» en los servicios que lo reconocen',
    account: {
      title: 'Aplicaciones con acceso',
      lead: 'Aplicaciones a las que diste acceso a tu cuenta. Si lo retiras, lo pierden al instante.',
      since: 'desde el',
      withdraw: 'Retirar',
    },
    logout: {
      title: 'Cerrar sesión',
      lead: '¿Quieres cerrar sesión?',
      leadOfApp: '{app} te pide que cierres sesión.',
      explained:
        'La sesión se cierra aquí y en las aplicaciones en las que la iniciaste desde este navegador.',
      confirm: 'Cerrar sesión',
      stay: 'Mantener la sesión',
      unusable: 'Volver a la aplicación',
      unusableLead: 'La aplicación pidió volver a una dirección que no está registrada para ella.',
    },
    unusable: {
      title: 'Este inicio de sesión no puede continuar',
      lead: 'La aplicación que te envió aquí hizo una solicitud que no se puede responder. Vuelve a ella e inténtalo de nuevo; si no sirve de nada, comunica esto a quienes la gestionan:',
    },
    gone: {
      title: 'Aquí no hay nada pendiente',
      lead: 'Este inicio de sesión ya terminó, tardó demasiado o empezó en otro navegador. Vuelve a la aplicación y empieza de nuevo.',
    },
  },
} as const satisfies Translation<typeof english, 'es'>
