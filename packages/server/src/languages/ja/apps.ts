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
      list: '{app} ができるようになること：',
      actsAt: '{audience} では、あなたとして操作します。そこで何ができるかは、そのサービスが決めます。',
      unchecked: 'このアプリの運営元は確認されていません。情報はアプリ自身の申告によるものです。',
      goesTo: 'その後、{host} に進みます。',
      later: 'この許可は、アカウントのページでいつでも取り消せます。',
      allow: '許可',
      deny: '許可しない',
    },
    scopes: {
      openid: 'アカウント ID であなたを識別する',
      profile: '名前を見る',
      email: 'メールアドレスを見る',
      offline_access: '不在の間も、あなたが終了するまでこのアクセスを維持する',
      'agent:connect': 'あなたとしてエージェントをハブに接続する',
      'agents:send': '接続中のエージェントにメッセージを送信する',
      'agents:read': '接続中のエージェントを一覧表示し、監視する',
      'account:read': 'プロフィール、残高、取引履歴を見る',
      'account:write': '名前を変更し、アプリに与えた許可を取り消す',
      'keys:read': 'キーを一覧表示し、使用日時を見る',
      'keys:write': 'キーの名前を変更し、失効させ、ネットワークと上限を狭める',
      'events:read': 'アカウントのセキュリティイベントを見る',
    },
    ownScope: '「{scope}」に対応するサービスで、その権限を使う',
    account: {
      title: 'アクセスできるアプリ',
      lead: 'アカウントの使用を許可したアプリです。取り消すと、アクセスはすぐに終了します。',
      since: '許可日：',
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
      lead: '移動元のアプリから、応答できないリクエストが届きました。アプリに戻ってもう一度お試しください。解決しない場合は、アプリの運営元に次の内容をお知らせください：',
    },
    gone: {
      title: '処理待ちの内容はありません',
      lead: 'このサインインはすでに完了したか、時間がかかりすぎたか、別のブラウザーで開始されました。アプリに戻ってもう一度やり直してください。',
    },
  },
} as const satisfies Translation<typeof english, 'ja'>
