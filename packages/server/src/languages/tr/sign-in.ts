import type { signInTexts as english } from '../en/sign-in.ts'
import type { Translation } from '../text.ts'

export const signInTexts = {
  signIn: {
    title: 'Giriş',
    heading: '{product} hesabınıza giriş yapın',
    lead: 'Size giriş yapmanızı sağlayan bir bağlantı gönderiyoruz. Parola gerekmez.',
    newHere: {
      open: 'Yeni misiniz? Aynı bağlantı hesabınızı oluşturur.',
      openWithCredit:
        'Yeni misiniz? Aynı bağlantı, {credit} deneme kredisiyle birlikte hesabınızı oluşturur.',
      domains: 'Yeni misiniz? Adresiniz uygunsa aynı bağlantı hesabınızı oluşturur.',
      invited: 'Yeni misiniz? Yalnızca davet edilenlere bağlantı gönderilir.',
    },
    email: 'E-posta adresi',
    emailExample: 'ada@example.com',
    submit: 'Bağlantı gönder',
    badEmail: 'Bu geçerli bir e-posta adresi değil. Şuna benzemeli: ada@example.com.',
  },
  checkMail: {
    title: 'E-postanızı kontrol edin',
    lead: '{email} adresine bir bağlantı ve bir kod gönderiyoruz. Bağlantıyı bu tarayıcıda açın ya da e-postayı herhangi bir yerde okuyup kodu buraya yazın. İkisi de 5 dakika içinde, bir kez çalışır.',
    code: 'E-postadaki kod',
    codeHint: '8 rakam',
    submit: 'Kodla giriş yap',
    badCode: 'Bu kod doğru değil. Kontrol edin, e-postadaki düğmeyi kullanın ya da yeni bir kod isteyin.',
    codesRefused:
      'Çok fazla yanlış kod girildiği için şimdilik hiçbir kod kabul edilmiyor. E-postadaki düğmeyi kullanın: o hâlâ çalışıyor.',
    expired: 'Bu kodun süresi doldu. Yeni bir kod isteyin.',
    used: 'Bu kod ya da daha sonraki bir kod zaten kullanıldı. Yeni bir kod isteyin.',
    resend: 'Yeniden gönder',
    wait: '{time} sonra yeniden gönderebilirsiniz.',
    limited: 'Çok fazla e-posta gönderildi.',
    noNewMail:
      'Çok fazla e-posta gönderildiği için yenisi gönderilmedi. Son bağlantı ve kod, süreleri dolana kadar çalışır.',
    limitIs: 'Bu kurulumla geliştirme yapıyorsanız: {setting} ayarı limiti yükseltir.',
    wrongAddress: 'Adres yanlış mı?',
    inbox: 'Yerel gelen kutusunu aç',
    inboxElsewhere:
      'Posta sunucusu ayarlanmadığı için e-postalar bu hizmetin çalıştığı makinede kalır. Onları orada şu komut gösterir:',
  },
  verify: {
    title: 'Giriş',
    signingIn: 'Giriş yapılıyor…',
    lead: '{email} olarak devam edin',
    submit: 'Giriş yap',
    notYou: 'Bunu siz istemediyseniz sayfayı kapatın: düğmeye basılmadan hiçbir şey olmaz.',
    other: 'Şu anda {email} olarak giriş yapmış durumdasınız. Burada giriş yaparsanız o oturum sona erer.',
    used: 'Bu bağlantı zaten kullanıldı',
    usedLead:
      'Her bağlantı bir kez çalışır ve biri kullanılınca diğerleri geçersiz olur. Siz değilseniz e-postanızı başka biri okuyabiliyor demektir.',
    expired: 'Bu bağlantının süresi doldu',
    expiredLead: 'Bir bağlantı 5 dakika çalışır. Yenisini şöyle alabilirsiniz:',
    invalid: 'Bu bağlantı çalışmıyor',
    invalidLead:
      'Eksik kopyalanmış ya da başka bir adres için oluşturulmuş olabilir. E-postadaki bağlantının tamamını kopyalayın ya da yenisini isteyin.',
    fresh: 'Yeni bağlantı gönder',
    notOpen: 'Bu adres için hesap yok',
    notOpenLead: 'Bu adres kayda açık değil. Bir hesabınız olması gerekiyorsa {support} adresine yazın.',
    suspended: 'Bu hesap askıya alındı',
    suspendedLead:
      'Hesabı {product} işletmecisi askıya aldı: kimse bu hesaba giriş yapamaz ve anahtarları çalışmaz. Hiçbir şey silinmedi.',
    suspendedSubject: 'Askıya alınan hesap {email}',
    askSupport: 'Nedenini sorun: {support}',
  },
} as const satisfies Translation<typeof english, 'tr'>
