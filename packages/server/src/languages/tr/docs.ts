import type { docsTexts as english } from '../en/docs.ts'
import type { Translation } from '../text.ts'

/** The texts around the documentation, which itself is in English. */
export const docsTexts = {
  docs: {
    title: 'Belgeler',
    menu: 'İçindekiler',
    guides: 'Kılavuzlar',
    reference: 'API başvurusu',
    operators: 'İşletmeciler için',
    onThisPage: 'Bu sayfada',
    search: 'Ara',
    searchFor: 'Belgelerde ara',
    found: { one: '“{query}” için {count} sonuç', other: '“{query}” için {count} sonuç' },
    notFound: '“{query}” için sonuç bulunamadı',
    notFoundLead: 'Daha az ya da başka sözcüklerle deneyin.',
    languages: 'Örneğin dili',
    path: 'Yol',
    query: 'Sorgu',
    headers: 'Başlıklar',
    body: 'Gövde',
    required: 'zorunlu',
    example: 'Örnek',
    answers: 'Yanıtlar',
    errors: 'Hatalar',
    code: 'Kod',
    status: 'Durum',
    meaning: 'Anlamı',
    whatToDo: 'Ne yapmalı',
    tryIt: 'Deneyin',
    tryLead:
      'Hizmet bu çağrıyı sizin adınıza, sizin yetkileriniz ve limitlerinizle yapar. Yapılan değişiklikler gerçektir.',
    trySignIn: 'Bu çağrıyı burada yapmak için giriş yapın.',
    send: 'Gönder',
    answer: 'Yanıt {status}',
    answerCut: 'Yanıtın geri kalanı gösterilmiyor.',
  },
} as const satisfies Translation<typeof english, 'tr'>
