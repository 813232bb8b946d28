import type { listsTexts as english } from '../en/lists.ts'
import type { Translation } from '../text.ts'

export const listsTexts = {
  keyList: {
    search: 'Ara',
    searchExample: 'Ad, anahtarın başı veya kimlik',
    sort: 'Sırala',
    sorts: {
      created: 'Önce en yeniler',
      name: 'Ad',
      used: 'Önce son kullanılanlar',
      expires: 'Önce süresi dolacaklar',
    },
    none: 'Bunu içeren anahtar yok.',
    found: { one: '{count} anahtar', other: '{count} anahtar' },
    window: 'Yalnızca en yeni {count} anahtar arasında.',
    windowOlder: 'Daha eski anahtarlarda ara',
    next: 'Sonraki sayfa',
    previous: 'Önceki sayfa',
    select: '{name} seç',
    selectAll: 'Bu sayfadakilerin tümünü seç',
    revoke: 'Seçili anahtarları iptal et',
    revokeTitle: { one: '{count} anahtar iptal edilsin mi?', other: '{count} anahtar iptal edilsin mi?' },
    revokeNow: { one: 'Bu anahtarı iptal et', other: 'Bu {count} anahtarı iptal et' },
    noneSelected: 'En az bir etkin anahtar seçin.',
  },
  eventList: {
    lead: 'Hesabınızda olanlar. {days} gün saklanır.',
    all: 'Tüm olaylar',
    filter: 'Konuya göre süz',
    groups: {
      sign_ins: 'Oturum açmalar',
      keys: 'Anahtarlar',
      account: 'Hesap',
      apps: 'Uygulamalar',
      support: 'Destek',
    },
    ofKey: 'Yalnızca {name} anahtarınınkiler.',
    everyKey: 'Tüm anahtarlarınkileri göster',
    empty: 'Bu türden olay yok.',
    newest: 'En yeni olaylar',
    older: 'Daha eski olaylar',
    export: 'Bunların tümü dosya olarak:',
    session: 'Oturum: {client}',
    pages: 'Diğer olaylar',
  },
} as const satisfies Translation<typeof english, 'tr'>
