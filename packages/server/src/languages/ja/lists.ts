import type { listsTexts as english } from '../en/lists.ts'
import type { Translation } from '../text.ts'

export const listsTexts = {
  keyList: {
    search: '検索',
    searchExample: '名前、キーの先頭、または ID',
    sort: '並べ替え',
    sorts: { created: '新しい順', name: '名前順', used: '最近使った順', expires: '期限が近い順' },
    none: '該当するキーはありません。',
    found: { other: '{count} 個のキー' },
    window: '新しいものから {count} 個のキーだけが対象です。',
    windowOlder: '以前のキーを検索',
    next: '次のページ',
    previous: '前のページ',
    select: '{name} を選択',
    selectAll: 'このページのすべてを選択',
    selected: '選択中：{count}',
    revoke: '選択したキーを失効させる',
    revokeTitle: { other: '{count} 個のキーを失効させますか？' },
    revokeNow: { other: '{count} 個のキーを失効させる' },
    noneSelected: '有効なキーを 1 つ以上選択してください。',
  },
  eventList: {
    lead: 'アカウントで発生したイベントです。{days} 日間保存されます。',
    all: 'すべてのイベント',
    filter: '内容で絞り込む',
    groups: {
      sign_ins: 'サインイン',
      keys: 'キー',
      account: 'アカウント',
      apps: 'アプリ',
      support: 'サポート',
    },
    ofKey: 'キー {name} のイベントのみを表示しています。',
    everyKey: 'すべてのキーのイベントを表示',
    empty: 'この種類のイベントはありません。',
    newest: '最新のイベント',
    older: '以前のイベント',
    export: 'これらすべてをファイルで取得：',
    session: 'セッション：{client}',
    pages: 'その他のイベント',
  },
} as const satisfies Translation<typeof english, 'ja'>
