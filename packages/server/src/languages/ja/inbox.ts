import type { inboxTexts as english } from '../en/inbox.ts'
import type { Translation } from '../text.ts'

export const inboxTexts = {
  inbox: {
    title: 'ローカル受信トレイ',
    lead: 'メールサーバーが設定されていないため、メールはこのマシンに 1 日間保管されます。',
    empty: 'メールはまだありません',
    emptyLead: 'サインイン用のリンクをリクエストすると、ここに自動的に届きます。',
    arrived: '新しいメールが届きました。',
    search: '検索',
    searchExample: 'アドレス、件名、本文',
    notFound: '該当するメールはありません',
    hidden: { other: '以前のメール {count} 通は表示されていません。検索で見つけられます。' },
    open: 'リンクを開く',
    copyCode: 'コードをコピー',
    spent: '使用済みまたは期限切れ',
    view: '表示',
    html: 'HTML',
    text: 'テキスト',
    source: 'ソース',
    noSource: 'このメールは以前のバージョンで保存されたため、ソースがありません。',
    back: 'すべてのメール',
    to: '宛先',
  },
} as const satisfies Translation<typeof english, 'ja'>
