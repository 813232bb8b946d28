import type { mailsTexts as english } from '../en/mails.ts'
import type { Translation } from '../text.ts'

export const mailsTexts = {
  mails: {
    paste: 'Düğme çalışmıyorsa bu adresi tarayıcınızda açın:',
    code: 'Ya da bu kodu giriş yaptığınız yere yazın:',
    expires:
      'Bağlantının ve kodun süresi {minutes} dakika içinde dolar; ikisi de bir kez çalışır. Kimseye vermeyin.',
    support: 'Sorunuz mu var? {support} adresine yazın',
    links: { terms: 'Koşullar', privacy: 'Gizlilik' },
    signup: {
      subject: '{product} hesabınızı oluşturun ({time})',
      preheader: 'Tek tıklamayla hesabınız hazır. Bağlantının ve kodun süresi {minutes} dakika içinde dolar.',
      heading: '{product} hesabınızı oluşturun',
      lead: 'Bu adres için henüz bir {product} hesabı yok. Adresin size ait olduğunu onaylayın, hesabınız hazır olsun.',
      button: 'Hesap oluştur',
      ignore:
        'Bunu siz istemediyseniz bu e-postayı yok sayabilirsiniz: bağlantı ya da kod olmadan hesap oluşturulmaz.',
    },
    login: {
      subject: '{product} hesabınıza giriş yapın ({time})',
      preheader: 'Giriş bağlantınız. Bağlantının ve kodun süresi {minutes} dakika içinde dolar.',
      heading: '{product} hesabınıza giriş yapın',
      lead: 'Yeniden hoş geldiniz. Düğmeyle giriş yapın; parola gerekmez.',
      button: 'Giriş yap',
      ignore:
        'Bunu siz istemediyseniz bu e-postayı yok sayabilirsiniz: bağlantı ya da kod olmadan kimse giriş yapamaz.',
    },
    invitation: {
      subject: '{product} için davet aldınız',
      preheader: 'Bu adresle giriş yapın, hesabınız hazır olsun.',
      heading: '{product} için davet aldınız',
      lead: 'Bu hizmetin işletmecisi bu adresi davet etti. Bu adresle giriş yapın: e-postayla bir bağlantı ve bir kod gelir, parola gerekmez ve hesabınız hazır olur.',
      button: 'Giriş yap',
      ends: 'Davet {date} tarihinde sona erer.',
      ignore: 'Bunu beklemiyorsanız bu e-postayı yok sayabilirsiniz: giriş yapılmadan hesap oluşturulmaz.',
    },
    welcome: {
      subject: '{product} hizmetine hoş geldiniz',
      preheader: 'Hesabınız hazır. Sırada ilk API anahtarınız var.',
      heading: '{product} hizmetine hoş geldiniz',
      lead: 'Hesabınız ücretsiz planda hazır.',
      leadWithCredit: 'Hesabınız ücretsiz planda hazır. Hesabınıza {credit} deneme kredisi ekledik.',
      next: 'Sıradaki adım bir API anahtarı: ajanınıza verin, kendiliğinden bağlansın. Her etkin bağlantıyı görürsünüz; bir anahtarı iptal ettiğinizde bağlantıları hemen sona erer.',
      button: 'İlk anahtarınızı oluşturun',
    },
    refreshTokenReused: {
      subject: '{product} güvenlik bildirimi: bir oturum sonlandırıldı ({at})',
      preheader: 'Biri, daha önce kullanılmış bir giriş tokenini yeniden kullandı.',
      heading: 'Oturumlarınızdan birini sonlandırdık',
      lead: 'Bu oturumun bir tokeni ikinci kez kullanıldı. Bu, bir kopyası başkasının eline geçtiğinde olur; bu yüzden oturum sonlandırıldı. Diğer oturumlarınız devam ediyor.',
      button: 'Oturumlarınıza bakın',
      unknown: 'Bunu tanımıyorsanız size ait olmayan oturumları sonlandırın ve anahtarları iptal edin.',
    },
    keyRevokedByHolder: {
      subject: '{product} güvenlik bildirimi: bir API anahtarı iptal edildi ({at})',
      preheader: 'Anahtarı elinde bulunduran biri bildirdi.',
      heading: 'API anahtarlarınızdan biri iptal edildi',
      lead: 'Bu anahtarı elinde bulunduran biri, olmaması gereken bir yerde bulunan anahtarlara yapıldığı gibi onu iptal etti. Anahtar artık çalışmıyor ve bağlantıları kapatıldı. Kullanımdaysa yenisini oluşturun.',
    },
    keyExpiring: {
      subject: {
        one: '{product}: {key} API anahtarının süresi {count} gün içinde doluyor',
        other: '{product}: {key} API anahtarının süresi {count} gün içinde doluyor',
      },
      subjectToday: '{product}: {key} API anahtarının süresi bugün doluyor',
      preheader: 'Zamanında yenileyin, hiçbir şey durmasın.',
      heading: {
        one: 'Bir API anahtarının süresi {count} gün içinde doluyor',
        other: 'Bir API anahtarının süresi {count} gün içinde doluyor',
      },
      headingToday: 'Bir API anahtarının süresi bugün doluyor',
      lead: 'Sonrasında anahtar reddedilir ve bağlantıları kapatılır. Daha önce yenileyin: yeni anahtar aynı yetkilere sahiptir ve geçiş sırasında ikisi de çalışır.',
    },
    keyUsedAgain: {
      subject:
        '{product} güvenlik bildirimi: uzun süredir kullanılmayan bir API anahtarı yeniden kullanılıyor ({at})',
      preheader: 'Uzun süredir kullanılmıyordu.',
      heading: 'Uzun süredir kullanılmayan bir API anahtarı yeniden kullanılıyor',
      lead: 'Bu anahtar uzun süredir kullanılmıyordu. Kullanan sizseniz sorun yok. Değilseniz iptal edin: bağlantıları hemen sona erer.',
    },
    keyLimit: {
      near: {
        subject: '{product}: {key} API anahtarı limitinin %80’ini kullandı: {limit}',
        preheader: 'Yakında limite ulaşacak. Limiti aşan tahsilatlar ve çağrılar reddedilir.',
        heading: 'Bir API anahtarı limitinin %80’ini kullandı: {limit}',
      },
      reached: {
        subject: '{product}: {key} API anahtarı limitine ulaştı: {limit}',
        preheader: 'Limiti aşan tahsilatlar ve çağrılar reddedilir.',
        heading: 'Bir API anahtarı limitine ulaştı: {limit}',
      },
      lead: 'Limiti aşan tahsilatlar ve çağrılar reddedilir. Bu beklediğinizden fazlaysa anahtarın ne için kullanıldığına bakın.',
      spend: { day: 'günlük harcama', month: 'aylık harcama', total: 'toplam harcama' },
      requests: {
        second: 'saniyelik istek sayısı',
        minute: 'dakikalık istek sayısı',
        hour: 'saatlik istek sayısı',
        day: 'günlük istek sayısı',
      },
      quota: {
        hour: 'saatlik çağrı kotası',
        day: 'günlük çağrı kotası',
        month: 'aylık çağrı kotası',
        total: 'toplam çağrı kotası',
      },
    },
    keyNewNetwork: {
      subject: '{product} güvenlik bildirimi: bir API anahtarı yeni bir ağdan kullanılıyor ({at})',
      preheader: 'Daha önce oradan kullanılmamıştı.',
      heading: 'Bir API anahtarı yeni bir ağdan kullanılıyor',
      lead: 'Kullanan sizseniz sorun yok. Değilseniz anahtarı iptal edin: bağlantıları hemen sona erer. Hep aynı ağlardan kullanılan bir anahtar için bu ağları belirtebilirsiniz; o zaman başka hiçbir yerden çalışmaz.',
    },
    keyCreatedByDevice: {
      subject: '{product} güvenlik bildirimi: bir cihaz API anahtarı aldı ({at})',
      preheader: 'Cihazlar sayfasında onayladınız.',
      heading: 'Bir cihaz API anahtarı aldı',
      lead: 'Bu anahtarı, hesabınızla onaylanan bir cihaz ya da terminal oluşturdu. Onaylayan sizseniz sorun yok. Değilseniz anahtarı iptal edin: bağlantıları hemen sona erer. Ardından tanımadığınız oturumları sonlandırın.',
    },
    webhookDisabled: {
      subject: '{product}: bir webhook devre dışı bırakıldı ({at})',
      preheader: 'Uç noktası üç gün boyunca hiçbir şeyi kabul etmedi.',
      heading: 'Bir webhook devre dışı bırakıldı',
      lead: 'Uç nokta üç gün boyunca hiçbir olayı kabul etmedi; bu yüzden artık ona bir şey gönderilmiyor. Bekleyen olaylar saklanır ve webhook’u yeniden etkinleştirdiğinizde gönderilir; o zamana kadar gerçekleşen olaylar gönderilmez.',
      button: 'Webhook’larınıza bakın',
    },
    test: {
      subject: '{product}: deneme e-postası',
      preheader: 'Bu hizmetin e-postaları ulaşıyor.',
      heading: 'E-posta çalışıyor',
      lead: 'Bu denemeyi bu hizmeti işletenlerden biri istedi. Yapmanız gereken bir şey yok.',
    },
    keysButton: 'Anahtarlarınıza bakın',
    facts: {
      name: 'Ad',
      key: 'Anahtar',
      when: 'Zaman',
      network: 'Ağ',
      program: 'Program',
      unknownProgram: 'bilinmiyor',
      revoked: 'İptal edildi',
      expires: 'Bitiş',
      used: 'Kullanıldı',
      noticed: 'Fark edildi',
      device: 'Cihaz',
      unnamedDevice: 'adsız',
      created: 'Oluşturuldu',
      endpoint: 'Uç nokta',
      failure: 'Son hata',
      disabled: 'Devre dışı bırakıldı',
    },
  },
} as const satisfies Translation<typeof english, 'tr'>
