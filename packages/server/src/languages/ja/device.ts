import type { deviceTexts as english } from '../en/device.ts'
import type { Translation } from '../text.ts'

export const deviceTexts = {
  device: {
    title: 'デバイスの接続',
    typeLead: 'デバイスまたはターミナルに表示されているコードを入力してください。',
    code: 'デバイスのコード',
    codeHint: 'WDJB-MJHT のような 8 文字の英字です。大文字と小文字は区別されず、ハイフンは省略できます。',
    next: '続ける',
    unknownCode:
      'このコードを表示しているデバイスはありません。文字を確認してください。コードは 10 分間有効で、一度だけ使えます。',
    codesRefused:
      '間違ったコードの入力が多すぎるため、現在コードの照合を停止しています。デバイスに表示されているリンクは使えます。',
    gone: 'このリクエストは終了しました',
    goneLead: 'すでに処理されたか、10 分の有効期間が過ぎました。デバイスでもう一度やり直してください。',
    signInAgain:
      'デバイスを承認するには、もう一度サインインしてください。前回のサインインから 30 分以上経過しています。',
    asks: '{client} がアカウントへのアクセスを求めています',
    who: 'プログラム',
    device: 'デバイス',
    claimed: '「{name}」（デバイスの申告による）',
    unnamed: '名前の申告なし',
    from: 'リクエスト元',
    sameNetwork: 'あなたと同じネットワーク',
    otherNetwork: 'あなたとは別のネットワーク',
    asked: 'リクエスト日時',
    account: 'あなたのアカウント',
    codeNow: 'デバイスのコード',
    mayTitle: '承認すると、次の権限が与えられます',
    key: '90 日以内に期限が切れる API キー 1 つ。できること：',
    access: '終了するまでのアカウントへのアクセス。できること：',
    ownScope: 'ここの別のサービスの権限',
    compared: '自分で開始した操作であり、手元のデバイスにこのコードが表示されています。',
    comparedMissing: 'コードをデバイスのものと照合し、同じであればチェックを入れてください。',
    warning:
      'このリンクやコードは誰かから送られてきたものですか？その場合は拒否してください。承認すると、相手にアカウントを渡すことになります。',
    approve: '承認',
    deny: '拒否',
    approved: 'デバイスを接続しました',
    approvedLead:
      'デバイスに戻ってください。処理は自動的に続きます。デバイスのキーは API キーの一覧に、セッションはセッションの一覧に表示され、そこで終了できます。',
    denied: 'デバイスを拒否しました',
    deniedLead:
      'デバイスには何も与えられません。リンクが誰かから送られてきた場合は、運営者に知らせてください。',
    keys: 'キーを見る',
  },
} as const satisfies Translation<typeof english, 'ja'>
