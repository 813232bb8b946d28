import type { appsTexts as english } from '../en/apps.ts'
import type { Translation } from '../text.ts'

export const appsTexts = {
  apps: {
    signInTo: '以继续使用 {app}',
    consent: {
      title: '允许访问',
      heading: '{app} 请求访问您的账户',
      signedInAs: '您当前以 {email} 的身份登录。',
      other: '使用其他账户',
      list: '{app} 将能够：',
      actsAt: '它将在 {audience} 以您的身份操作，能做什么由该服务决定。',
      unchecked: '没有人核实过此应用的运营者：相关信息由其自行提供。',
      goesTo: '随后您将前往 {host}。',
      later: '您可以随时在账户页面撤销。',
      allow: '允许',
      deny: '不允许',
    },
    scopes: {
      openid: '通过您的账户 ID 确认您的身份',
      profile: '查看您的姓名',
      email: '查看您的邮箱地址',
      offline_access: '在您离开时保留此访问权限，直到您将其结束',
      'agent:connect': '以您的身份将智能体连接到 Hub',
      'agents:send': '向您已连接的智能体发送消息',
      'agents:read': '列出并查看您已连接的智能体',
      'account:read': '查看您的个人资料、余额和交易记录',
      'account:write': '更改您的姓名，以及撤销您授予应用的权限',
      'keys:read': '列出您的密钥及其使用时间',
      'keys:write': '重命名和吊销您的密钥，并收紧其网络和限额',
      'events:read': '查看您账户的安全事件',
    },
    ownScope: '在支持“{scope}”的服务中使用该权限',
    account: {
      title: '有访问权限的应用',
      lead: '您允许使用您账户的应用。撤销后，其访问权限会立即终止。',
      since: '始于',
      withdraw: '撤销',
    },
    logout: {
      title: '退出登录',
      lead: '要退出登录吗？',
      leadOfApp: '{app} 请您退出登录。',
      explained: '您将在此处以及从此浏览器登录的各应用中退出登录。',
      confirm: '退出登录',
      stay: '保持登录',
      unusable: '返回应用',
      unusableLead: '应用请求接下来显示它的页面，但该地址并未为它注册。',
    },
    unusable: {
      title: '此次登录无法继续',
      lead: '将您带到此处的应用发出了无法处理的请求。请返回应用重试；如果仍然不行，请将以下信息告知其运营者：',
    },
    gone: {
      title: '这里没有待处理的内容',
      lead: '此次登录已完成、耗时过长，或是在其他浏览器中开始的。请返回应用重新开始。',
    },
  },
} as const satisfies Translation<typeof english, 'zh'>
