import type { deviceTexts as english } from '../en/device.ts'
import type { Translation } from '../text.ts'

export const deviceTexts = {
  device: {
    title: 'Conectar un dispositivo',
    typeLead: 'Escribe el código que muestra tu dispositivo o terminal.',
    code: 'Código del dispositivo',
    codeHint: '8 letras, como WDJB-MJHT. Mayúsculas o minúsculas, con o sin guion.',
    next: 'Continuar',
    unknownCode:
      'Ningún dispositivo muestra ahora este código. Comprueba las letras; un código es válido durante 10 minutos y funciona una sola vez.',
    codesRefused:
      'Se escribieron demasiados códigos incorrectos, así que por ahora no se comprueba ninguno. Abre el enlace que muestra tu dispositivo: ese sí funciona.',
    gone: 'Esta solicitud ya no es válida',
    goneLead: 'Ya se decidió sobre ella, o han pasado sus 10 minutos. Empieza de nuevo en el dispositivo.',
    signInAgain:
      'Para aprobar un dispositivo, inicia sesión de nuevo: la última vez fue hace más de 30 minutos.',
    asks: '{client} pide acceso a tu cuenta',
    who: 'Programa',
    device: 'Dispositivo',
    claimed: '«{name}», según el propio dispositivo',
    unnamed: 'No indicó ningún nombre',
    from: 'Origen',
    sameNetwork: 'la misma red en la que estás',
    otherNetwork: 'una red distinta de la tuya',
    asked: 'Solicitado el',
    account: 'Tu cuenta',
    codeNow: 'Su código',
    mayTitle: 'Si lo apruebas, recibe',
    key: 'Una clave de API que expira en un máximo de 90 días y que permite:',
    access: 'Acceso a tu cuenta, hasta que le pongas fin, para:',
    ownScope: 'un permiso para otro servicio',
    compared: 'Esto lo he iniciado yo, y el dispositivo que tengo delante muestra exactamente este código.',
    comparedMissing: 'Compara el código con el de tu dispositivo y marca la casilla si es el mismo.',
    warning:
      '¿Alguien te envió este enlace o este código? Entonces recházalo: si lo apruebas, le darías acceso a tu cuenta.',
    approve: 'Aprobar',
    deny: 'Rechazar',
    approved: 'El dispositivo está conectado',
    approvedLead:
      'Vuelve al dispositivo: continúa por sí solo. Su clave está entre tus claves de API, o su sesión entre tus sesiones; ahí puedes ponerle fin.',
    denied: 'Se ha rechazado el dispositivo',
    deniedLead: 'No recibe nada. Si alguien te envió el enlace, avisa al operador del servicio.',
    keys: 'Ver tus claves',
  },
} as const satisfies Translation<typeof english, 'es'>
