import type { appsTexts as english } from '../en/apps.ts'
import type { Translation } from '../text.ts'

export const appsTexts = {
  apps: {
    signInTo: '{app} に進むには',
    consent: {
      title: 'アクセスの許可',
      heading: '{app} がアカウントへのアクセスを求めています',
      signedInAs: '{email} としてサインインしています。',
      other: '別のアカウントを使う',
      list: '{app} ができるようになること:',
      actsAt: '{audience} で、あなたとして操作します。',
      unchecked: 'このアプリの運営元は確認されていません。情報はアプリ自身の申告によるものです。',
      goesTo: 'その後、{host} に進みます。',
      later: 'この許可は、アカウントのページでいつでも取り消せます。',
      allow: '許可',
      deny: '許可しない',
    },
    scopes: {
      openid: 'アカウント ID によるご本人の確認',
      profile: '名前の表示',
      email: 'メールアドレスの表示',
      offline_access: '不在の間も、あなたが終了するまでこのアクセスを維持すること',
      'agent:connect': 'あなたとしてエージェントをハブに接続すること',
      'agents:send': '接続中のエージェントへのメッセージの送信',
      'agents:read': '接続中のエージェントの一覧表示と監視',
      'account:read': 'プロフィール、残高、取引履歴の表示',
      'account:write': '名前の変更と、アプリに与えた許可の取り消し',
      'keys:read': 'キーとその使用日時の一覧表示',
      'keys:write': 'キーの名前の変更と失効',
      'events:read': 'アカウントのセキュリティイベントの表示',
    },
    ownScope: '「{scope}」に対応するサービスでの、その権限の使用',
    account: {
      title: 'アクセスできるアプリ',
      lead: 'アカウントの使用を許可したアプリです。取り消すと、アクセスはすぐに終了します。',
      since: '許可日:',
      withdraw: '取り消す',
    },
    logout: {
      title: 'サインアウト',
      lead: 'サインアウトしますか？',
      leadOfApp: '{app} がサインアウトを求めています。',
      explained: 'ここと、このブラウザーからサインインしたアプリからサインアウトされます。',
      confirm: 'サインアウト',
      stay: 'サインインしたままにする',
      unusable: 'アプリに戻る',
      unusableLead:
        'アプリは次に自身のページの表示を求めましたが、そのアドレスはこのアプリに登録されていません。',
    },
    unusable: {
      title: 'このサインインは続けられません',
      lead: '移動元のアプリから、応答できないリクエストが届きました。アプリに戻ってもう一度お試しください。解決しない場合は、アプリの運営元に次の内容をお知らせください:',
    },
    gone: {
      title: '処理待ちの内容はありません',
      lead: 'このサインインはすでに完了したか、時間がかかりすぎたか、別のブラウザーで開始されました。アプリに戻ってもう一度やり直してください。',
    },
  },
} as const satisfies Translation<typeof english, 'ja'>
