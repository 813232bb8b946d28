import type { listsTexts as english } from '../en/lists.ts'
import type { Translation } from '../text.ts'

export const listsTexts = {
  keyList: {
    search: '検索',
    searchExample: '名前、キーの先頭、または ID',
    sort: '並べ替え',
    sorts: { created: '新しい順', name: '名前順', used: '最近使った順', expires: '期限が近い順' },
    none: '該当するキーはありません。',
    found: { other: '{count} 件のキー' },
    window: '新しい {count} 件のキーのみが対象です。',
    windowOlder: '古いキーを検索',
    next: '次のページ',
    previous: '前のページ',
    select: '{name} を選択',
    selectAll: 'このページのすべてを選択',
    revoke: '選択したキーを取り消す',
    revokeTitle: { other: '{count} 件のキーを取り消しますか？' },
    revokeNow: { other: '{count} 件のキーを取り消す' },
    noneSelected: '有効なキーを 1 つ以上選択してください。',
  },
  eventList: {
    lead: 'アカウントで起きたことです。{days} 日間保存されます。',
    all: 'すべてのイベント',
    filter: '内容で絞り込む',
    groups: {
      sign_ins: 'サインイン',
      keys: 'キー',
      account: 'アカウント',
      apps: 'アプリ',
      support: 'サポート',
    },
    ofKey: 'キー {name} のみ。',
    everyKey: 'すべてのキーを表示',
    empty: 'この種類のイベントはありません。',
    newest: '最新のイベント',
    older: '以前のイベント',
    export: 'これらすべてをファイルで：',
    session: 'セッション：{client}',
    pages: 'その他のイベント',
  },
} as const satisfies Translation<typeof english, 'ja'>
