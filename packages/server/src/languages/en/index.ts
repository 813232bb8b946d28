import { accountTexts } from './account.ts'
import { accountChangesTexts } from './account-changes.ts'
import { agentsTexts } from './agents.ts'
import { appsTexts } from './apps.ts'
import { deviceTexts } from './device.ts'
import { docsTexts } from './docs.ts'
import { frameTexts } from './frame.ts'
import { inboxTexts } from './inbox.ts'
import { keysTexts } from './keys.ts'
import { listsTexts } from './lists.ts'
import { mailsTexts } from './mails.ts'
import { signInTexts } from './sign-in.ts'

/** All texts for people, in English. The types of the texts in other languages are derived from these. */
export const texts = {
  ...frameTexts,
  ...signInTexts,
  ...keysTexts,
  ...agentsTexts,
  ...accountTexts,
  ...accountChangesTexts,
  ...appsTexts,
  ...deviceTexts,
  ...inboxTexts,
  ...listsTexts,
  ...docsTexts,
  ...mailsTexts,
}
