// Progressive enhancement: every page works without this file. The session is in a cookie that no script can read.

document.documentElement.classList.add('js')

// Removes the token of a mailed link from the address bar and the history; the form still has it. Removes `done`, so
// that a reload does not repeat the notice.
const pageUrl = new URL(location.href)
if (['/verify', '/account/email'].includes(pageUrl.pathname)) history.replaceState(null, '', pageUrl.pathname)
else if (pageUrl.searchParams.has('done')) {
  pageUrl.searchParams.delete('done')
  history.replaceState(null, '', pageUrl)
}

const { lang } = document.documentElement
/** The locale of dates and numbers: the browser's first locale in the page's language, or else that language. */
const locale = navigator.languages.find(each => each.split('-')[0] === lang.split('-')[0]) ?? lang

/** The units of relative times such as `3 minutes ago`, as on the server. */
const AGE_UNITS = [
  [86_400, 'day'],
  [3600, 'hour'],
  [60, 'minute'],
]
const ageFormat = new Intl.RelativeTimeFormat(lang)
function agoText(seconds) {
  const [size, unit] = AGE_UNITS.find(([size]) => seconds >= size) ?? []
  return size ? ageFormat.format(-Math.floor(seconds / size), unit) : document.body.dataset.justNow
}
const AGES_UPDATE_MS = 10_000
setInterval(() => {
  for (const element of document.querySelectorAll('time[data-age]')) {
    const elapsed = (performance.now() - element.shownAt) / 1000
    element.textContent = agoText(Number(element.dataset.age) + elapsed)
  }
}, AGES_UPDATE_MS)

function localizeTimes(root) {
  for (const element of root.querySelectorAll('time')) {
    const date = new Date(element.dateTime)
    element.shownAt = performance.now()
    const isDay = element.classList.contains('day')
    element.title = date.toLocaleString(locale, { dateStyle: 'full', timeStyle: 'long' })
    if (element.dataset.age) continue
    element.textContent = isDay
      ? date.toLocaleDateString(locale, { dateStyle: 'medium' })
      : date.toLocaleString(locale, { dateStyle: 'medium', timeStyle: 'short' })
  }
}
localizeTimes(document)

// If a navigation is wider than the window, scrolls it to the entry of the current page, also when a phone is turned.
const observer = new ResizeObserver(entries => {
  for (const { target: nav } of entries) {
    const current = nav.querySelector('[aria-current]')
    if (current)
      nav.scrollLeft +=
        current.getBoundingClientRect().x - nav.getBoundingClientRect().x - nav.clientWidth / 3
  }
})
for (const nav of document.querySelectorAll('.tabs, .filter')) observer.observe(nav)

// While a form is being sent, its button shows that, and the form is not sent a second time.
const RESEND_AFTER_MS = 10_000
function startSending(form, submitter) {
  const button = submitter ?? form.querySelector('button:not([type])')
  form.dataset.sent = 'yes'
  button?.setAttribute('aria-busy', 'true')
  return () => {
    delete form.dataset.sent
    button?.removeAttribute('aria-busy')
  }
}
addEventListener('submit', event => {
  const form = event.target
  if (form.dataset.sent) return event.preventDefault()
  const endSending = startSending(form, event.submitter)
  if (form.dataset.inPlace) {
    event.preventDefault()
    void sendInPlace(form).finally(endSending)
  } else setTimeout(endSending, RESEND_AFTER_MS)
})
addEventListener('pageshow', event => {
  if (!event.persisted) return
  for (const form of document.forms) delete form.dataset.sent
  for (const button of document.querySelectorAll('[aria-busy]')) button.removeAttribute('aria-busy')
})

// Sends a form without leaving the page. Shows the content of the response's element with the id in `data-in-place`. If
// the response has no such element or is a refusal: follows its redirect, or without one announces the problem.
async function sendInPlace(form) {
  const id = form.dataset.inPlace
  try {
    const answer = await fetch(form.action, {
      method: 'POST',
      body: new URLSearchParams(new FormData(form)),
      headers: { accept: 'text/html' },
    })
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html')
    const part = page.getElementById(id)
    if (part && answer.ok) replaceContent(document.getElementById(id), part.innerHTML)
    else if (answer.redirected) location.assign(answer.url)
    else announce(page.querySelector('[role=alert], h1')?.textContent ?? '', true)
  } catch {
    announce(document.getElementById(id).dataset.lost, true)
  }
}

/** Makes screen readers say a text. A problem is shown as well. */
function announce(text, isProblem = false) {
  const output = document.querySelector('[data-announce]')
  if (!output) return
  output.textContent = text
  output.classList.toggle('unseen', !isProblem)
  output.classList.toggle('banner', isProblem)
  output.classList.toggle('problem', isProblem)
}

function srOnly(text) {
  return Object.assign(document.createElement('span'), { className: 'unseen', textContent: text })
}

/** Replaces the content of a live part of the page. The focus stays in its row, or moves to the main part. */
function replaceContent(element, content) {
  const focused = element.contains(document.activeElement) ? document.activeElement : null
  const row = focused?.closest('[data-row]')
  const position = row ? [...row.querySelectorAll('a, button')].indexOf(focused) : -1
  element.innerHTML = content
  localizeTimes(element)
  if (focused) {
    const newRow = row && element.querySelector(`[data-row="${CSS.escape(row.dataset.row)}"]`)
    const target = newRow?.querySelectorAll('a, button')[position] ?? document.getElementById('main')
    target.focus({ preventScroll: true })
  }
  const source = element.querySelector('[data-says]')
  if (source) announce(source.dataset.says)
  if (element.querySelector('.live.on')) doneLink?.classList.remove('second')
  if (element.querySelector('[data-final]')) element.dispatchEvent(new Event('final'))
}

document.querySelector('form[data-auto-submit]')?.requestSubmit()

const COPIED_SHOWN_MS = 2000
document.addEventListener('click', async event => {
  const button = event.target.closest('button[data-copy]')
  if (!button) return
  const source = document.getElementById(button.dataset.copy)
  getSelection().selectAllChildren(source)
  if (!navigator.clipboard) return
  await navigator.clipboard.writeText(source.textContent)
  if (source.hasAttribute('data-secret')) allowLeaving()
  const label = button.textContent
  if (label === button.dataset.copied) return
  button.textContent = button.dataset.copied
  setTimeout(() => {
    button.textContent = label
  }, COPIED_SHOWN_MS)
})

// Sends a form once, as soon as the code in it is complete.
for (const input of document.querySelectorAll('input[data-complete]')) {
  input.addEventListener('input', () => {
    const isComplete = input.value.replace(/\D/g, '').length === Number(input.dataset.complete)
    if (!isComplete || input.dataset.completed) return
    input.dataset.completed = 'yes'
    input.form.requestSubmit()
  })
}

// The page of a new key. Until the key was copied, the browser asks before it leaves the page. The address becomes that
// of the key's own page, so that neither the history nor a reload leads back to the form. The key is removed from the
// page when it is left, since browsers keep pages for Back.
const guardedKey = document.querySelector('[data-guards]')
const askBeforeLeaving = event => event.preventDefault()
const doneLink = document.querySelector('[data-releases]')
const allowLeaving = () => {
  doneLink.classList.remove('second')
  removeEventListener('beforeunload', askBeforeLeaving)
}
if (guardedKey) {
  history.replaceState(null, '', guardedKey.dataset.becomes)
  addEventListener('beforeunload', askBeforeLeaving)
  doneLink.addEventListener('click', allowLeaving)
  document.addEventListener('copy', () => {
    if (getSelection().toString().includes(document.getElementById('new-key').textContent)) allowLeaving()
  })
  addEventListener('pagehide', () => {
    for (const secret of document.querySelectorAll('[data-secret]')) secret.textContent = ''
  })
  addEventListener('pageshow', event => event.persisted && location.reload())
}

for (const element of document.querySelectorAll('[data-opens-after]')) {
  setTimeout(() => {
    if (!element.parentElement.querySelector('[data-waiting]')) return
    element.open = true
    announce(element.dataset.says)
  }, Number(element.dataset.opensAfter) * 1000)
}

/** Formats seconds as `0:57` or `1:00:57`. */
function countdown(seconds) {
  const pad = count => String(count).padStart(2, '0')
  const minutes = Math.floor(seconds / 60)
  const hours = Math.floor(minutes / 60)
  return `${hours > 0 ? `${hours}:${pad(minutes % 60)}` : minutes}:${pad(seconds % 60)}`
}

for (const element of document.querySelectorAll('[data-countdown]')) {
  const endsAt = performance.now() + Number(element.dataset.countdown) * 1000
  const button = document.getElementById(element.dataset.enables)
  const tick = () => {
    const remaining = Math.ceil((endsAt - performance.now()) / 1000)
    button.disabled = remaining > 0
    element.textContent = remaining > 0 ? element.dataset.words.replace('{}', countdown(remaining)) : ''
    if (remaining > 0) setTimeout(tick, 250)
  }
  tick()
}

// After a sign-in by a mailed link in one tab, the tab that waits for it continues. The broadcast has no secret.
const channel = new BroadcastChannel('keyway')
if (document.body.hasAttribute('data-signed-in')) channel.postMessage('signed in')
for (const element of document.querySelectorAll('[data-goes-on]')) {
  channel.addEventListener('message', () => {
    if (!element.querySelector('input.code').value) location.replace(element.dataset.goesOn)
  })
}

// Browsers limit the connections to one server, so hidden tabs close their stream. `onConnection` is called with
// whether the stream is open; short interruptions, in which the browser opens a new one, are not reported.
const LOST_AFTER_MS = 3000
const REOPEN_MS = 5000
function listen(url, listeners, onConnection) {
  const address = new URL(url, location.href)
  let stream = null
  let lossTimer = 0
  let reopenTimer = 0
  const close = () => {
    clearTimeout(lossTimer)
    clearTimeout(reopenTimer)
    lossTimer = reopenTimer = 0
    stream?.close()
    stream = null
  }
  const openStream = () => {
    stream = new EventSource(address)
    stream.addEventListener('open', () => {
      clearTimeout(lossTimer)
      lossTimer = 0
      onConnection(true)
    })
    stream.addEventListener('error', () => {
      lossTimer ||= setTimeout(() => onConnection(false), LOST_AFTER_MS)
      // The browser itself does not reconnect after an error response, for example of a proxy.
      if (stream.readyState === EventSource.CLOSED && !reopenTimer)
        reopenTimer = setTimeout(() => {
          reopenTimer = 0
          openStream()
        }, REOPEN_MS)
    })
    stream.addEventListener('ended', () => {
      stop()
      location.reload()
    })
    for (const [name, listener] of Object.entries(listeners)) {
      stream.addEventListener(name, event => {
        if (event.lastEventId) address.searchParams.set('seen', event.lastEventId)
        listener(event)
      })
    }
  }
  const openIfVisible = () => {
    if (document.hidden) close()
    else if (!stream) openStream()
  }
  const stop = () => {
    document.removeEventListener('visibilitychange', openIfVisible)
    close()
  }
  document.addEventListener('visibilitychange', openIfVisible)
  openIfVisible()
  return stop
}

// Shows by dots which keys have a live connection.
for (const list of document.querySelectorAll('[data-live-keys]')) {
  listen(
    list.dataset.liveKeys,
    {
      live(event) {
        const ids = event.data.split(' ')
        for (const dot of list.querySelectorAll('[data-dot]')) {
          // The link to the key follows the dot.
          const isOn = ids.includes(dot.nextElementSibling.pathname.split('/').pop())
          dot.classList.toggle('on', isOn)
          dot.title = isOn ? list.dataset.says : ''
          dot.replaceChildren(...(isOn ? [srOnly(dot.title)] : []))
        }
      },
    },
    isOpen => list.classList.toggle('unsure', !isOpen),
  )
}

// Counts the selected rows of a list. Elements with `data-selects` select all rows, or none if all are selected
// already.
for (const form of document.querySelectorAll('form[data-selection]')) {
  // form.id would be the boxes, since inputs with the name `id` replace the property.
  const id = form.dataset.selection
  const boxes = [...document.querySelectorAll(`input[name=id][form="${id}"]`)]
  const selectors = document.querySelectorAll(`[data-selects="${id}"]`)
  const output = form.querySelector('[data-words]')
  const showCount = () => {
    const count = boxes.filter(box => box.checked).length
    output.textContent = count ? output.dataset.words.replace('{}', count.toLocaleString(locale)) : ''
    for (const selector of selectors) {
      selector.checked = count === boxes.length
      selector.indeterminate = count > 0 && count < boxes.length
    }
  }
  for (const selector of selectors) {
    selector.classList.add('works')
    selector.addEventListener('click', () => {
      const isFull = boxes.every(box => box.checked)
      for (const box of boxes) box.checked = !isFull
      showCount()
    })
  }
  for (const box of boxes) box.addEventListener('change', showCount)
  // Browsers restore the selection after Back.
  addEventListener('pageshow', showCount)
}

// Live parts: the server sends the whole part whenever it has changed. A part that may be out of date is greyed out.
for (const element of document.querySelectorAll('[data-stream]')) {
  const stop = listen(
    element.dataset.stream,
    { list: event => replaceContent(element, event.data), announce: event => announce(event.data) },
    isOpen => {
      if (element.classList.contains('lost') === !isOpen) return
      element.classList.toggle('lost', !isOpen)
      announce(isOpen ? '' : element.dataset.lost)
    },
  )
  element.addEventListener('final', stop)
}
