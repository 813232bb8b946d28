import type { docsTexts as english } from '../en/docs.ts'
import type { Translation } from '../text.ts'

/** The texts around the documentation, which itself is in English. */
export const docsTexts = {
  docs: {
    title: 'ドキュメント',
    menu: '目次',
    guides: 'ガイド',
    reference: 'API リファレンス',
    operators: '運営者向け',
    onThisPage: 'このページの内容',
    search: '検索',
    searchFor: 'ドキュメントを検索',
    found: { other: '「{query}」の検索結果：{count} 件' },
    notFound: '「{query}」は見つかりませんでした',
    notFoundLead: '語を減らすか、別の語でお試しください。',
    languages: '例の言語',
    path: 'パス',
    query: 'クエリ',
    headers: 'ヘッダー',
    body: '本文',
    required: '必須',
    example: '例',
    answers: 'レスポンス',
    errors: 'エラー',
    code: 'コード',
    status: 'ステータス',
    meaning: '意味',
    whatToDo: '対処方法',
    tryIt: '試す',
    tryLead: 'この呼び出しは、あなたの権限と上限で実際に実行されます。変更内容はそのまま反映されます。',
    trySignIn: 'この呼び出しをここで実行するには、サインインしてください。',
    send: '送信',
    answer: 'レスポンス {status}',
    answerCut: 'レスポンスの残りは表示されません。',
  },
} as const satisfies Translation<typeof english, 'ja'>
