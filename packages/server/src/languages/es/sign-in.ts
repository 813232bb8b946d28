import type { signInTexts as english } from '../en/sign-in.ts'
import type { Translation } from '../text.ts'

export const signInTexts = {
  signIn: {
    title: 'Iniciar sesión',
    heading: 'Iniciar sesión en {product}',
    lead: 'Te enviamos por correo un enlace para iniciar sesión. No hay contraseña.',
    newHere: {
      open: '¿Es tu primera vez? El mismo enlace crea tu cuenta.',
      openWithCredit: '¿Es tu primera vez? El mismo enlace crea tu cuenta, con {credit} para hacer pruebas.',
      domains: '¿Es tu primera vez? El mismo enlace crea tu cuenta, si tu dirección puede tener una.',
      invited: '¿Es tu primera vez? Solo recibe un enlace quien tiene una invitación.',
    },
    email: 'Correo electrónico',
    emailExample: 'ada@example.com',
    submit: 'Enviarme un enlace',
    badEmail: 'Esa no es una dirección de correo válida. Debe parecerse a ada@example.com.',
  },
  checkMail: {
    title: 'Revisa tu correo',
    lead: 'Un enlace y un código van en camino a {email}. Abre el enlace en este navegador, o lee el correo donde quieras y escribe aquí el código. Ambos funcionan una sola vez, durante 5 minutos.',
    code: 'Código del correo',
    codeHint: '8 dígitos',
    submit: 'Iniciar sesión con el código',
    badCode: 'Ese código no es correcto. Compruébalo, usa el botón del correo o pide uno nuevo.',
    codesRefused:
      'Se escribieron demasiados códigos incorrectos, así que por ahora no se acepta ninguno. Usa el botón del correo: ese sí funciona.',
    expired: 'Ese código ha expirado. Pide uno nuevo.',
    used: 'Ese código, u otro posterior, ya se usó. Pide uno nuevo.',
    resend: 'Enviar de nuevo',
    wait: 'Podrás enviarlo de nuevo dentro de {time}.',
    limited: 'Se enviaron demasiados correos.',
    noNewMail:
      'No se envió ningún correo nuevo: ya hubo demasiados. El último enlace y el último código funcionan hasta que caduquen.',
    limitIs: 'Si desarrollas con esta instalación: el ajuste {setting} eleva el límite.',
    wrongAddress: '¿Dirección equivocada?',
    inbox: 'Abrir el buzón local',
    inboxElsewhere:
      'No hay ningún servidor de correo configurado, así que los correos se quedan en la máquina que ejecuta este servicio. Allí los muestra este comando:',
  },
  verify: {
    title: 'Iniciar sesión',
    signingIn: 'Iniciando sesión…',
    lead: 'Continuar como {email}',
    submit: 'Iniciar sesión',
    notYou: 'Si no lo pediste, cierra la página: sin el botón no ocurre nada.',
    other: 'Ahora tienes una sesión abierta como {email}. Si inicias sesión aquí, se cerrará.',
    used: 'Este enlace ya se usó',
    usedLead:
      'Cada enlace funciona una vez, y al usar uno se anulan los demás. Si no fuiste tú, otra persona puede leer tu correo.',
    expired: 'Este enlace ha expirado',
    expiredLead: 'Un enlace funciona durante 5 minutos. Así recibes uno nuevo:',
    invalid: 'Este enlace no funciona',
    invalidLead:
      'Puede que esté cortado o que sea para otra dirección. Copia el enlace entero del correo o pide uno nuevo.',
    fresh: 'Enviarme un enlace nuevo',
    notOpen: 'No hay ninguna cuenta con esta dirección',
    notOpenLead:
      'El registro no está abierto para ella. Si crees que ya tienes una cuenta, escribe a {support}.',
    suspended: 'Esta cuenta está suspendida',
    suspendedLead:
      'El operador de {product} la suspendió: nadie puede iniciar sesión en ella y sus claves no funcionan. No se ha eliminado nada.',
    suspendedSubject: 'Cuenta suspendida: {email}',
    askSupport: 'Preguntar el motivo a {support}',
  },
} as const satisfies Translation<typeof english, 'es'>
