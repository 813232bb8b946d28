import type { listsTexts as english } from '../en/lists.ts'
import type { Translation } from '../text.ts'

export const listsTexts = {
  keyList: {
    search: '搜索',
    searchExample: '名称、密钥开头或 ID',
    sort: '排序方式',
    sorts: { created: '最新优先', name: '名称', used: '最近使用优先', expires: '最先到期优先' },
    none: '没有包含该内容的密钥。',
    found: { other: '{count} 个密钥' },
    window: '仅限最新的 {count} 个密钥。',
    windowOlder: '在更早的密钥中搜索',
    next: '下一页',
    previous: '上一页',
    select: '选择 {name}',
    selectAll: '选择本页全部',
    selected: '已选择：{count}',
    revoke: '吊销所选密钥',
    revokeTitle: { other: '要吊销 {count} 个密钥吗？' },
    revokeNow: { other: '吊销这 {count} 个密钥' },
    noneSelected: '请至少选择一个有效的密钥。',
  },
  eventList: {
    lead: '您的账户中发生的事情。保留 {days} 天。',
    all: '所有事件',
    filter: '按内容筛选',
    groups: { sign_ins: '登录', keys: '密钥', account: '账户', apps: '应用', support: '支持' },
    ofKey: '仅限密钥 {name}。',
    everyKey: '显示所有密钥的事件',
    empty: '没有此类事件。',
    newest: '最新事件',
    older: '更早的事件',
    export: '将以上全部导出为文件：',
    session: '会话：{client}',
    byOperator: '由运营者执行',
    pages: '更多事件',
  },
} as const satisfies Translation<typeof english, 'zh'>
