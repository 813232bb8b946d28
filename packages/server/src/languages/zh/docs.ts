import type { docsTexts as english } from '../en/docs.ts'
import type { Translation } from '../text.ts'

/** The texts around the documentation, which itself is in English. */
export const docsTexts = {
  docs: {
    title: '文档',
    menu: '目录',
    guides: '指南',
    reference: 'API 参考',
    operators: '面向运营方',
    onThisPage: '本页内容',
    search: '搜索',
    searchFor: '搜索文档',
    found: { other: '“{query}”有 {count} 条结果' },
    notFound: '没有找到与“{query}”有关的内容',
    notFoundLead: '请尝试减少关键词或换用其他词。',
    languages: '示例的编程语言',
    path: '路径',
    query: '查询参数',
    headers: '标头',
    body: '请求正文',
    required: '必填',
    example: '示例',
    answers: '响应',
    errors: '错误',
    code: '代码',
    status: '状态',
    meaning: '含义',
    whatToDo: '处理方法',
    tryIt: '试一试',
    tryLead: '服务会以您的身份、权限和限制执行此调用。所作的更改会真实生效。',
    trySignIn: '登录后即可在此执行此调用。',
    send: '发送',
    answer: '响应 {status}',
    answerCut: '响应的其余部分未显示。',
  },
} as const satisfies Translation<typeof english, 'zh'>
