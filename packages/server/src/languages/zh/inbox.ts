import type { inboxTexts as english } from '../en/inbox.ts'
import type { Translation } from '../text.ts'

export const inboxTexts = {
  inbox: {
    title: '本地收件箱',
    lead: '尚未配置邮件服务器，因此邮件在此机器上保留一天。',
    empty: '还没有邮件',
    emptyLead: '请求一个登录链接，它会自动出现在这里。',
    arrived: '有新邮件。',
    search: '搜索',
    searchExample: '地址、主题或正文',
    notFound: '没有包含该内容的邮件',
    hidden: { other: '还有 {count} 封较早的邮件未显示，可通过搜索找到。' },
    open: '打开链接',
    copyCode: '复制验证码',
    spent: '已使用或已过期',
    view: '查看方式',
    html: 'HTML',
    text: '纯文本',
    source: '源代码',
    noSource: '此邮件由较早的版本保存，没有源代码。',
    back: '所有邮件',
    to: '收件人',
  },
} as const satisfies Translation<typeof english, 'zh'>
