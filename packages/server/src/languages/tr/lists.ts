import type { listsTexts as english } from '../en/lists.ts'
import type { Translation } from '../text.ts'

export const listsTexts = {
  keyList: {
    search: 'Ara',
    searchExample: 'Ad, anahtarın başı ya da kimlik',
    sort: 'Sırala',
    sorts: {
      created: 'Önce en yeniler',
      name: 'Ad',
      used: 'Önce son kullanılanlar',
      expires: 'Önce süresi dolacaklar',
    },
    none: 'Bunu içeren anahtar yok.',
    found: { one: '{count} anahtar', other: '{count} anahtar' },
    window: 'Yalnızca en yeni {count} anahtar içinde.',
    windowOlder: 'Daha eski anahtarlarda ara',
    next: 'Sonraki sayfa',
    previous: 'Önceki sayfa',
    select: 'Seç: {name}',
    selectAll: 'Bu sayfadakilerin tümünü seç',
    selected: 'Seçilen: {count}',
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
      sign_ins: 'Girişler',
      keys: 'Anahtarlar',
      account: 'Hesap',
      apps: 'Uygulamalar',
      support: 'Destek',
    },
    ofKey: 'Yalnızca {name} anahtarına ait olanlar.',
    everyKey: 'Tüm anahtarların olaylarını göster',
    empty: 'Bu türden olay yok.',
    newest: 'En yeni olaylar',
    older: 'Daha eski olaylar',
    export: 'Tümünü dosya olarak indirin:',
    session: 'Oturum: {client}',
    pages: 'Diğer olaylar',
  },
} as const satisfies Translation<typeof english, 'tr'>
