import type { deviceTexts as english } from '../en/device.ts'
import type { Translation } from '../text.ts'

export const deviceTexts = {
  device: {
    title: 'Bir cihaz bağlayın',
    typeLead: 'Cihazınızın ya da terminalinizin gösterdiği kodu yazın.',
    code: 'Cihazdaki kod',
    codeHint: 'WDJB-MJHT gibi 8 harf. Büyük ya da küçük harf, tireli ya da tiresiz.',
    next: 'Devam',
    unknownCode:
      'Şu anda bu kodu gösteren bir cihaz yok. Harfleri kontrol edin; bir kod 10 dakika geçerlidir ve bir kez çalışır.',
    codesRefused:
      'Çok fazla yanlış kod girildiği için şimdilik hiçbiri denetlenmiyor. Cihazınızın gösterdiği bağlantıyı açın: o hâlâ çalışıyor.',
    gone: 'Bu istek sona erdi',
    goneLead: 'İstek zaten karara bağlandı ya da 10 dakikası doldu. Cihazda yeniden başlayın.',
    signInAgain:
      'Bir cihazı onaylamak için yeniden giriş yapın: son girişinizin üzerinden 30 dakikadan fazla geçti.',
    asks: '{client} hesabınıza erişmek istiyor',
    who: 'Program',
    device: 'Cihaz',
    claimed: '“{name}” (kendi verdiği ad)',
    unnamed: 'Ad vermedi',
    from: 'İsteğin geldiği yer',
    sameNetwork: 'sizin de bulunduğunuz ağ',
    otherNetwork: 'sizin bulunduğunuz ağ değil',
    asked: 'İstek zamanı',
    account: 'Hesabınız',
    codeNow: 'Cihazın kodu',
    mayTitle: 'Onaylarsanız alacakları',
    key: 'En geç 90 gün içinde süresi dolacak bir API anahtarı. Şunları yapabilir:',
    access: 'Siz sonlandırana kadar hesabınıza erişim. Şunları yapabilir:',
    ownScope: 'buradaki başka bir hizmetin izni',
    compared: 'Bunu ben başlattım ve önümdeki cihaz tam olarak bu kodu gösteriyor.',
    comparedMissing: 'Kodu cihazınızdakiyle karşılaştırın ve aynıysa kutuyu işaretleyin.',
    warning:
      'Bu bağlantıyı ya da kodu size biri mi gönderdi? Öyleyse reddedin: onaylarsanız hesabınızı ona vermiş olursunuz.',
    approve: 'Onayla',
    deny: 'Reddet',
    approved: 'Cihaz bağlandı',
    approvedLead:
      'Cihaza dönün: kendiliğinden devam eder. Anahtarını API anahtarlarınızda ya da oturumunu oturumlarınızda bulabilir, oradan sonlandırabilirsiniz.',
    denied: 'Cihaz reddedildi',
    deniedLead: 'Hiçbir şey almaz. Bağlantıyı size biri gönderdiyse bunu hizmetin işletmecisine bildirin.',
    keys: 'Anahtarlarınıza bakın',
  },
} as const satisfies Translation<typeof english, 'tr'>
