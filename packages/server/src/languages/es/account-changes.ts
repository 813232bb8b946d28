import type { accountChangesTexts as english } from '../en/account-changes.ts'
import type { Translation } from '../text.ts'

export const accountChangesTexts = {
  addressChange: {
    title: 'Cambiar la dirección',
    label: 'Nueva dirección',
    submit: 'Cambiar la dirección',
    hint: 'Se envía un enlace a ambas direcciones. Nada cambia hasta que las dos lo confirmen.',
    pending: 'Para cambiar a {email} falta todavía:',
    awaits: 'el enlace del correo a {email}',
    until: 'Se puede confirmar hasta el {date}.',
    cancel: 'Cancelar el cambio',
    same: 'Esa ya es tu dirección.',
    otherDomain:
      'Las cuentas de este servicio solo pueden tener direcciones de ciertos dominios, y esta no es de ninguno de ellos.',
    lead: 'La dirección de tu cuenta cambia de {from} a {to} cuando ambas lo hayan confirmado. Entonces se cierran todas las demás sesiones; las claves siguen igual.',
    confirm: 'Confirmar',
    confirmed: 'Confirmado. Ahora abre el enlace del correo a {email}.',
    invalid: 'Este enlace no funciona',
    invalidLead:
      'Puede que haya expirado, que otro más reciente lo haya sustituido o que sea de una cuenta distinta de {email}. No se ha cambiado nada.',
    toAccount: 'Ir a tu cuenta',
  },
  deletion: {
    title: 'Eliminar la cuenta',
    lead: 'Al cabo de {days} días, durante los cuales puedes cambiar de opinión.',
    start: 'Eliminar mi cuenta',
    confirmTitle: '¿Eliminar tu cuenta?',
    wait: 'Hasta el {date} todo sigue igual, y puedes conservar la cuenta.',
    afterwards:
      'Después terminan sus claves y sesiones, se desconectan sus agentes y se borran tu nombre y tu dirección.',
    ledger: 'Los movimientos se conservan, sin tu nombre. El saldo que quede se pierde.',
    again: 'La misma dirección puede volver a registrarse, sin otro crédito de prueba.',
    hint: 'Para detenerlo todo al instante, revoca antes tus claves.',
    submit: 'Eliminar mi cuenta el {date}',
    cancel: 'Conservarla',
    pending: 'Tu cuenta se eliminará el {date}. Hasta entonces todo sigue igual.',
    keep: 'Conservar mi cuenta',
    lastAdministrator: 'No queda ningún otro administrador. Da antes ese rol a otra persona.',
  },
  balanceHistory: {
    title: 'Saldo de los últimos {days} días',
    summary: 'De {from} a {to}, entre {lowest} y {highest}.',
    change: 'De {from} a {to}.',
    same: '{balance} todos los días.',
    columns: { day: 'Día (UTC)', balance: 'Saldo al final', change: 'Variación' },
  },
  accountMails: {
    look: 'Ver tu cuenta',
    network: 'Red',
    newAddress: 'Nueva dirección',
    expires: 'El enlace expira el {at} y funciona una sola vez.',
    deletionRequested: {
      subject: '{product}: tu cuenta se eliminará el {at}',
      preheader: 'Hasta entonces puedes conservarla.',
      heading: 'Tu cuenta se eliminará',
      lead: 'Hasta entonces todo sigue igual. Después terminan sus claves y sesiones, y se borran el nombre y la dirección. Eso no se puede deshacer. Para conservar la cuenta, inicia sesión y usa el botón de la página de tu cuenta.',
      deleted: 'Eliminación',
      asked: 'Solicitud',
      unknown:
        'Si no fuiste tú, conserva la cuenta, cierra las sesiones y revoca las claves que no sean tuyas.',
    },
    oldAddress: {
      subject: '{product}: confirma la nueva dirección de tu cuenta ({at})',
      preheader: 'Cambia cuando ambas direcciones lo hayan confirmado.',
      heading: '¿Cambiar la dirección de tu cuenta?',
      lead: 'Alguien con una sesión abierta en tu cuenta pidió cambiar su dirección. El cambio se hace cuando esta dirección y la nueva lo hayan confirmado. Abre el enlace donde tengas la sesión abierta.',
      button: 'Confirmar el cambio',
      unknown:
        'Si no fuiste tú, no lo confirmes: sin el enlace no cambia nada. Después cierra las sesiones que no sean tuyas.',
    },
    newAddressMail: {
      subject: '{product}: confirma que esta dirección es tuya ({at})',
      preheader: 'Será la dirección de una cuenta cuando ambas direcciones lo hayan confirmado.',
      heading: '¿Usar esta dirección para tu cuenta?',
      lead: 'Alguien pidió usar esta dirección para su cuenta de {product}. Si fuiste tú, confírmalo donde tengas la sesión abierta. La dirección anterior también tiene que confirmarlo.',
      button: 'Confirmar la dirección',
      ignore: 'Si no lo pediste, puedes ignorar este correo: sin el enlace no ocurre nada.',
    },
    addressTaken: {
      subject: '{product}: esta dirección ya tiene una cuenta ({at})',
      preheader: 'Alguien pidió usarla para otra cuenta. No se ha cambiado nada.',
      heading: 'Esta dirección ya tiene una cuenta',
      lead: 'Alguien pidió usar esta dirección para otra cuenta de {product}. Eso no es posible mientras tenga una cuenta propia. No se ha cambiado nada, y no se ha informado a nadie.',
      ignore: 'Si fuiste tú, elimina antes una de las dos cuentas. Si no, no tienes que hacer nada.',
    },
    addressChanged: {
      subject: 'Seguridad de {product}: se ha cambiado la dirección de tu cuenta ({at})',
      preheader: 'Con esta dirección ya no se puede iniciar sesión en ella.',
      heading: 'Se ha cambiado la dirección de tu cuenta',
      lead: 'Ambas direcciones confirmaron el cambio. Con esta ya no se puede iniciar sesión en la cuenta, y se han cerrado todas las demás sesiones. Las claves siguen igual.',
      changed: 'Cambio',
      unknown: 'Si no fuiste tú, escribe de inmediato a la dirección que aparece abajo.',
    },
  },
} as const satisfies Translation<typeof english, 'es'>
