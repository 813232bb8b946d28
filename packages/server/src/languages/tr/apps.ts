import type { appsTexts as english } from '../en/apps.ts'
import type { Translation } from '../text.ts'

export const appsTexts = {
  apps: {
    signInTo: '{app} uygulamasına devam etmek için',
    consent: {
      title: 'Erişim izni',
      heading: '{app} hesabınıza erişmek istiyor',
      signedInAs: '{email} olarak giriş yaptınız.',
      other: 'Başka bir hesap kullan',
      list: '{app} şunları yapabilecek:',
      actsAt:
        '{audience} üzerinde sizin adınıza işlem yapacak; orada neler yapabileceğine o hizmet karar verir.',
      unchecked: 'Bu uygulamayı kimin işlettiğini kimse doğrulamadı: bilgileri kendisi verdi.',
      goesTo: 'Ardından {host} adresine gidersiniz.',
      later: 'Bu izni istediğiniz zaman hesap sayfanızdan geri alabilirsiniz.',
      allow: 'İzin ver',
      deny: 'İzin verme',
    },
    scopes: {
      openid: 'hesabınızın kimliğinden siz olduğunuzu bilmek',
      profile: 'adınızı görmek',
      email: 'e-posta adresinizi görmek',
      offline_access: 'siz yokken de, siz sonlandırana kadar bu erişimi sürdürmek',
      'agent:connect': 'sizin adınıza hub’a ajan bağlamak',
      'agents:send': 'bağlı ajanlarınıza mesaj göndermek',
      'agents:read': 'bağlı ajanlarınızı listelemek ve izlemek',
      'account:read': 'profilinizi, bakiyenizi ve hesap hareketlerinizi görmek',
      'account:write': 'adınızı değiştirmek ve uygulamalara verdiğiniz izinleri geri almak',
      'keys:read': 'anahtarlarınızı listelemek ve ne zaman kullanıldıklarını görmek',
      'keys:write': 'anahtarlarınızı yeniden adlandırmak, iptal etmek, ağlarını ve limitlerini daraltmak',
      'events:read': 'hesabınızın güvenlik olaylarını görmek',
    },
    ownScope: '“{scope}” kapsamını, onu tanıyan hizmetlerde kullanmak',
    account: {
      title: 'Erişimi olan uygulamalar',
      lead: 'Hesabınızı kullanmasına izin verdiğiniz uygulamalar. İzni geri alırsanız erişimleri hemen sona erer.',
      since: 'İzin tarihi:',
      withdraw: 'İzni geri al',
    },
    logout: {
      title: 'Çıkış',
      lead: 'Çıkış yapmak istiyor musunuz?',
      leadOfApp: '{app} çıkış yapmanızı istiyor.',
      explained: 'Buradan ve bu tarayıcıyla giriş yaptığınız uygulamalardan çıkış yaparsınız.',
      confirm: 'Çıkış yap',
      stay: 'Çıkış yapma',
      unusable: 'Uygulamaya dönüş',
      unusableLead: 'Uygulama, çıkıştan sonra kendisi için kayıtlı olmayan bir adresin açılmasını istedi.',
    },
    unusable: {
      title: 'Bu girişe devam edilemiyor',
      lead: 'Sizi buraya gönderen uygulama, yanıtlanamayan bir istekte bulundu. Uygulamaya dönüp yeniden deneyin; işe yaramazsa onu işletenlere şunu bildirin:',
    },
    gone: {
      title: 'Burada bekleyen bir şey yok',
      lead: 'Bu giriş zaten tamamlandı, çok uzun sürdü ya da başka bir tarayıcıda başladı. Uygulamaya dönün ve yeniden başlayın.',
    },
  },
} as const satisfies Translation<typeof english, 'tr'>
