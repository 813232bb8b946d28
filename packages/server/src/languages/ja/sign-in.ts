import type { signInTexts as english } from '../en/sign-in.ts'
import type { Translation } from '../text.ts'

export const signInTexts = {
  signIn: {
    title: 'サインイン',
    heading: '{product} にサインイン',
    lead: 'サインイン用のリンクをメールでお送りします。パスワードは不要です。',
    newHere: {
      open: '初めての方も、同じリンクでアカウントを作成できます。',
      openWithCredit: '初めての方も、同じリンクでアカウントを作成でき、お試し用に {credit} が付きます。',
      domains: '初めての方も、対象のメールアドレスであれば、同じリンクでアカウントを作成できます。',
      invited: '初めての方は、招待されている場合にのみリンクが届きます。',
    },
    email: 'メールアドレス',
    emailExample: 'ada@example.com',
    submit: 'リンクを送信',
    badEmail: '有効なメールアドレスではありません。ada@example.com のような形式で入力してください。',
  },
  checkMail: {
    title: 'メールをご確認ください',
    lead: '{email} にリンクとコードを送信しました。このブラウザーでリンクを開くか、ほかの端末でメールを確認してコードをここに入力してください。どちらも 5 分以内に一度だけ使えます。',
    code: 'メールに記載のコード',
    codeHint: '8 桁の数字',
    submit: 'コードでサインイン',
    badCode:
      'コードが正しくありません。もう一度確認するか、メールのボタンを使うか、新しいコードを送信してください。',
    codesRefused:
      '間違ったコードの入力が多すぎるため、現在コードは受け付けていません。メールのボタンは使えます。',
    expired: 'コードの有効期限が切れています。新しいコードを送信してください。',
    used: 'そのコード、またはその後のコードはすでに使用されています。新しいコードを送信してください。',
    resend: '再送信',
    wait: '{time} 後に再送信できます。',
    limited: 'メールの送信回数が多すぎます。',
    limitIs: 'この環境で開発している場合は、設定 {setting} で上限を引き上げられます。',
    wrongAddress: 'アドレスが違う場合',
    inbox: 'ローカル受信トレイを開く',
    inboxElsewhere:
      'メールサーバーが設定されていないため、メールはこのサービスを実行しているマシンに保管されます。そのマシンでは次のコマンドで確認できます：',
  },
  verify: {
    title: 'サインイン',
    signingIn: 'サインインしています…',
    lead: '{email} として続ける',
    submit: 'サインイン',
    notYou: '心当たりがない場合は、このページを閉じてください。ボタンを押さなければ何も起こりません。',
    other: '現在 {email} としてサインインしています。ここでサインインすると、そのセッションは終了します。',
    used: 'このリンクは使用済みです',
    usedLead:
      '各リンクは一度だけ使え、ひとつを使うとほかのリンクは無効になります。使用した覚えがない場合は、ほかの人があなたのメールを読める状態にあります。',
    expired: 'このリンクは有効期限が切れています',
    expiredLead: 'リンクの有効期間は 5 分です。ここから新しいリンクを受け取れます：',
    invalid: 'このリンクは無効です',
    invalidLead:
      'リンクが途中で切れているか、別のアドレス用の可能性があります。メールからリンク全体をコピーするか、新しいリンクを受け取ってください。',
    fresh: '新しいリンクを送信',
    notOpen: 'このアドレスのアカウントはありません',
    notOpenLead:
      'このアドレスでは新規登録できません。アカウントがあるはずの場合は、{support} までご連絡ください。',
    suspended: 'このアカウントは停止されています',
    suspendedLead:
      '{product} の運営者がアカウントを停止したため、誰もサインインできず、キーも使えません。削除されたものはありません。',
    suspendedSubject: '停止されたアカウント {email}',
    askSupport: '{support} に理由を問い合わせる',
  },
} as const satisfies Translation<typeof english, 'ja'>
