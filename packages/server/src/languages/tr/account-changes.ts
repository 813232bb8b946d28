import type { accountChangesTexts as english } from '../en/account-changes.ts'
import type { Translation } from '../text.ts'

export const accountChangesTexts = {
  addressChange: {
    title: 'Adresi değiştir',
    label: 'Yeni adres',
    submit: 'Adresi değiştir',
    hint: 'Her iki adrese de birer bağlantı gider. İkisi de onaylamadan hiçbir şey değişmez.',
    pending: '{email} adresine geçiş için hâlâ bekleniyor:',
    awaits: '{email} adresine giden e-postadaki bağlantı',
    until: '{date} tarihine kadar onaylanabilir.',
    cancel: 'Değişiklikten vazgeç',
    same: 'Bu zaten sizin adresiniz.',
    otherDomain:
      'Buradaki hesapların adresleri yalnızca belirli alan adlarından olabilir; bu onlardan biri değil.',
    lead: 'İki adres de onayladığında hesabınızın adresi {from} yerine {to} olur. O zaman diğer tüm oturumlar sona erer; anahtarlar olduğu gibi kalır.',
    confirm: 'Onayla',
    confirmed: 'Onaylandı. Şimdi {email} adresine giden e-postadaki bağlantıyı açın.',
    invalid: 'Bu bağlantı çalışmıyor',
    invalidLead:
      'Süresi dolmuş, yerine yenisi gönderilmiş ya da {email} dışındaki bir hesaba ait olabilir. Hiçbir şey değiştirilmedi.',
    toAccount: 'Hesabınıza gidin',
  },
  deletion: {
    title: 'Hesabı sil',
    lead: '{days} gün sonra silinir; bu sürede fikrinizi değiştirebilirsiniz.',
    start: 'Hesabımı sil',
    confirmTitle: 'Hesabınız silinsin mi?',
    wait: '{date} tarihine kadar her şey devam eder ve hesabınızı koruyabilirsiniz.',
    afterwards:
      'Ardından anahtarları ve oturumları sona erer, ajanlarının bağlantısı kesilir, adınız ve adresiniz silinir.',
    ledger: 'Hesap hareketleri adınız olmadan kalır. Kalan bakiyeniz silinir.',
    again: 'Aynı adresle yeniden kaydolabilirsiniz, ama yeni deneme kredisi verilmez.',
    hint: 'Her şeyi hemen durdurmak için önce anahtarlarınızı iptal edin.',
    submit: 'Hesabımı {date} tarihinde sil',
    cancel: 'Vazgeç',
    pending: 'Hesabınız {date} tarihinde silinecek. O zamana kadar her şey devam eder.',
    keep: 'Hesabımı koru',
    lastAdministrator: 'Son yönetici sizsiniz. Önce başka birini yönetici yapın.',
  },
  balanceHistory: {
    title: 'Son {days} gündeki bakiye',
    summary: 'Başta {from}, sonda {to}; en düşük {lowest}, en yüksek {highest}.',
    change: 'Başta {from}, sonda {to}.',
    same: 'Her gün {balance}.',
    columns: { day: 'Gün (UTC)', balance: 'Gün sonu bakiyesi', change: 'Değişim' },
  },
  accountMails: {
    look: 'Hesabınıza bakın',
    network: 'Ağ',
    newAddress: 'Yeni adres',
    expires: 'Bağlantı {at} tarihine kadar geçerlidir ve bir kez çalışır.',
    deletionRequested: {
      subject: '{product}: hesabınız {at} tarihinde silinecek',
      preheader: 'O zamana kadar hesabınızı koruyabilirsiniz.',
      heading: 'Hesabınız silinecek',
      lead: 'O zamana kadar her şey devam eder. Ardından anahtarları ve oturumları sona erer, ad ve adres silinir. Bu geri alınamaz. Hesabı korumak için giriş yapın ve hesap sayfanızdaki düğmeyi kullanın.',
      deleted: 'Silinme',
      asked: 'İstek',
      unknown:
        'Bunu siz yapmadıysanız hesabı koruyun; size ait olmayan oturumları sonlandırın ve anahtarları iptal edin.',
    },
    oldAddress: {
      subject: '{product}: hesabınızın yeni adresini onaylayın ({at})',
      preheader: 'İki adres de onayladığında değişir.',
      heading: 'Hesabınızın adresi değişsin mi?',
      lead: 'Hesabınıza giriş yapmış biri, hesabın adresini değiştirmek istedi. Bu adres ve yeni adres onayladığında değişir. Bağlantıyı giriş yapmış olduğunuz yerde açın.',
      button: 'Değişikliği onayla',
      unknown:
        'Bunu siz yapmadıysanız onaylamayın: bağlantı olmadan hiçbir şey değişmez. Ardından size ait olmayan oturumları sonlandırın.',
    },
    newAddressMail: {
      subject: '{product}: bu adresin size ait olduğunu onaylayın ({at})',
      preheader: 'İki adres de onayladığında bir hesabın adresi olur.',
      heading: 'Bu adres hesabınız için kullanılsın mı?',
      lead: 'Biri bu adresi {product} hesabı için kullanmak istedi. Bu sizseniz giriş yapmış olduğunuz yerde onaylayın. Eski adresin de onaylaması gerekir.',
      button: 'Adresi onayla',
      ignore: 'Bunu siz istemediyseniz bu e-postayı yok sayabilirsiniz: bağlantı olmadan hiçbir şey olmaz.',
    },
    addressTaken: {
      subject: '{product}: bu adresin zaten bir hesabı var ({at})',
      preheader: 'Biri bu adresi başka bir hesap için kullanmak istedi. Hiçbir şey değiştirilmedi.',
      heading: 'Bu adresin zaten bir hesabı var',
      lead: 'Biri bu adresi başka bir {product} hesabı için kullanmak istedi. Adresin kendi hesabı olduğu sürece bu mümkün değil. Hiçbir şey değiştirilmedi ve kimseye haber verilmedi.',
      ignore: 'Bu sizseniz önce iki hesaptan birini silin. Değilseniz yapmanız gereken bir şey yok.',
    },
    addressChanged: {
      subject: '{product} güvenlik bildirimi: hesabınızın adresi değiştirildi ({at})',
      preheader: 'Bu adresle artık hesaba giriş yapılamaz.',
      heading: 'Hesabınızın adresi değiştirildi',
      lead: 'İki adres de değişikliği onayladı. Bu adresle artık hesaba giriş yapılamaz ve diğer tüm oturumlar sonlandırıldı. Anahtarlar olduğu gibi kalır.',
      changed: 'Değiştirildi',
      unknown: 'Bunu siz yapmadıysanız hemen aşağıdaki adrese yazın.',
    },
  },
} as const satisfies Translation<typeof english, 'tr'>
