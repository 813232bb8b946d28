/** A client for forms and cookies: it submits the forms of pages and keeps cookies. */
export interface FormBrowser {
  cookies: Map<string, string>
  get(path: string): Promise<{ status: number; text: string; location: string | null }>
  /** Fills in and submits the first form of the page at `path` that posts to `action`. */
  submit(
    path: string,
    action: string,
    fields: Record<string, string>,
  ): Promise<{ status: number; text: string; location: string | null }>
}

export function createFormBrowser(url: string): FormBrowser {
  const cookies = new Map<string, string>()
  const call = async (path: string, init: RequestInit = {}) => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(url + path, {
      ...init,
      redirect: 'manual',
      headers: { Accept: 'text/html', 'Sec-Fetch-Site': 'same-origin', Cookie: cookie, ...init.headers },
    })
    for (const line of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line)!
      if (value) cookies.set(name!, decodeURIComponent(value))
      else cookies.delete(name!)
    }
    return {
      status: response.status,
      text: await response.text(),
      location: response.headers.get('location'),
    }
  }
  return {
    cookies,
    get: path => call(path),
    async submit(path, action, fields) {
      const { text } = await call(path)
      const form = text.split(/<form\b/).find(each => each.includes(`action="${action}"`)) ?? ''
      const hiddenFields = [...form.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)"/g)]
      const body = new URLSearchParams([
        ...hiddenFields.map(([, name, value]) => [name!, value!]),
        ...Object.entries(fields),
      ])
      const headers = { 'Content-Type': 'application/x-www-form-urlencoded' }
      return call(action, { method: 'POST', headers, body: body.toString() })
    },
  }
}
