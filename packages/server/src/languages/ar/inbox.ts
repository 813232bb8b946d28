import type { inboxTexts as english } from '../en/inbox.ts'
import type { Translation } from '../text.ts'

export const inboxTexts = {
  inbox: {
    title: 'البريد الوارد المحلي',
    lead: 'لم يُضبط خادم بريد، لذا تبقى الرسائل على هذا الجهاز مدة يوم.',
    empty: 'لا رسائل بعد',
    emptyLead: 'اطلب رابطًا لتسجيل الدخول، وسيظهر هنا تلقائيًا.',
    arrived: 'وصلت رسالة جديدة.',
    search: 'بحث',
    searchExample: 'العنوان أو الموضوع أو النص',
    notFound: 'لا توجد رسالة تحتوي على ذلك',
    hidden: {
      zero: 'كل الرسائل معروضة.',
      one: 'هناك رسالة واحدة أقدم غير معروضة؛ يمكن العثور عليها بالبحث.',
      two: 'هناك رسالتان أقدم غير معروضتين؛ يمكن العثور عليهما بالبحث.',
      few: 'هناك {count} رسائل أقدم غير معروضة؛ يمكن العثور عليها بالبحث.',
      many: 'هناك {count} رسالة أقدم غير معروضة؛ يمكن العثور عليها بالبحث.',
      other: 'هناك {count} رسالة أقدم غير معروضة؛ يمكن العثور عليها بالبحث.',
    },
    open: 'فتح الرابط',
    copyCode: 'نسخ الرمز',
    spent: 'مستخدَم أو منتهي الصلاحية',
    view: 'طريقة العرض',
    html: 'HTML',
    text: 'نص',
    source: 'المصدر',
    noSource: 'حُفظت هذه الرسالة بإصدار سابق، من دون مصدرها.',
    back: 'كل الرسائل',
    to: 'إلى',
  },
} as const satisfies Translation<typeof english, 'ar'>
