import type { inboxTexts as english } from '../en/inbox.ts'
import type { Translation } from '../text.ts'

export const inboxTexts = {
  inbox: {
    title: 'Yerel gelen kutusu',
    lead: 'Posta sunucusu ayarlanmadığı için e-postalar bir gün boyunca bu makinede kalır.',
    empty: 'Henüz e-posta yok',
    emptyLead: 'Bir giriş bağlantısı isteyin: kendiliğinden buraya gelir.',
    arrived: 'Yeni e-posta geldi.',
    search: 'Ara',
    searchExample: 'Adres, konu ya da metin',
    notFound: 'Bunu içeren e-posta yok',
    hidden: {
      one: '{count} eski e-posta gösterilmiyor; arayarak bulabilirsiniz.',
      other: '{count} eski e-posta gösterilmiyor; arayarak bulabilirsiniz.',
    },
    open: 'Bağlantıyı aç',
    copyCode: 'Kodu kopyala',
    spent: 'Kullanıldı veya süresi doldu',
    view: 'Görünüm',
    html: 'HTML',
    text: 'Metin',
    source: 'Kaynak',
    noSource: 'Bu e-postayı önceki bir sürüm, kaynağı olmadan sakladı.',
    back: 'Tüm e-postalar',
    to: 'Kime',
  },
} as const satisfies Translation<typeof english, 'tr'>
