// Progressive enhancement: every page works without this file. Tokens are never stored where a script could read them.

document.documentElement.classList.add('js')

// Removes the link's token from the address bar and the history; the form still has it. Removes `done`, so that a reload
// does not repeat the notice.
const here = new URL(location.href)
if (['/verify', '/account/email'].includes(here.pathname)) history.replaceState(null, '', here.pathname)
else if (here.searchParams.has('done')) {
  here.searchParams.delete('done')
  history.replaceState(null, '', here)
}

/** The locale of dates and numbers: the reader's own, if it is one of the page's language. */
const { lang } = document.documentElement
const locale = navigator.languages.find(each => each.split('-')[0] === lang.split('-')[0]) ?? lang

/** `3 minutes ago`, as the server writes it. */
const AGE_UNITS = [
  [86_400, 'day'],
  [3600, 'hour'],
  [60, 'minute'],
]
const ages = new Intl.RelativeTimeFormat(lang)
function agoText(seconds) {
  const [size, unit] = AGE_UNITS.find(([size]) => seconds >= size) ?? []
  return size ? ages.format(-Math.floor(seconds / size), unit) : document.body.dataset.justNow
}
const AGED_EVERY_MS = 10_000
setInterval(() => {
  for (const element of document.querySelectorAll('time[data-age]')) {
    const since = (performance.now() - element.shownAt) / 1000
    element.textContent = agoText(Number(element.dataset.age) + since)
  }
}, AGED_EVERY_MS)

/** Shows times in the reader's time zone. */
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
const widths = new ResizeObserver(resized => {
  for (const { target: nav } of resized) {
    const shown = nav.querySelector('[aria-current]')
    if (shown)
      nav.scrollLeft += shown.getBoundingClientRect().x - nav.getBoundingClientRect().x - nav.clientWidth / 3
  }
})
for (const nav of document.querySelectorAll('.tabs, .filter')) widths.observe(nav)

// A form that is on its way shows it, and is not sent a second time.
const RESENT_AFTER_MS = 10_000
function sending(form, submitter) {
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
  const sent = sending(form, event.submitter)
  if (form.dataset.inPlace) {
    event.preventDefault()
    void sendInPlace(form).finally(sent)
  } else setTimeout(sent, RESENT_AFTER_MS)
})
addEventListener('pageshow', event => {
  if (!event.persisted) return
  for (const form of document.forms) delete form.dataset.sent
  for (const button of document.querySelectorAll('[aria-busy]')) button.removeAttribute('aria-busy')
})

/** Sends a form and shows the part of the answer that has the same id, without leaving the page. */
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
    if (part && answer.ok) show(document.getElementById(id), part.innerHTML)
    else if (answer.redirected) location.assign(answer.url)
    else announce(page.querySelector('[role=alert], h1')?.textContent ?? '', true)
  } catch {
    announce(document.getElementById(id).dataset.lost, true)
  }
}

/** Said by screen readers; shown as well if it is a problem. */
function announce(text, isProblem = false) {
  const place = document.querySelector('[data-announce]')
  if (!place) return
  place.textContent = text
  place.classList.toggle('unseen', !isProblem)
  place.classList.toggle('banner', isProblem)
  place.classList.toggle('problem', isProblem)
}

/** Replaces the content of a live part, and keeps the focus in its row. */
function show(element, content) {
  const focused = element.contains(document.activeElement) ? document.activeElement : null
  const row = focused?.closest('[data-row]')
  const position = row ? [...row.querySelectorAll('a, button')].indexOf(focused) : -1
  element.innerHTML = content
  localizeTimes(element)
  if (focused) {
    const same = row && element.querySelector(`[data-row="${CSS.escape(row.dataset.row)}"]`)
    const target = same?.querySelectorAll('a, button')[position] ?? document.getElementById('main')
    target.focus({ preventScroll: true })
  }
  const says = element.querySelector('[data-says]')
  if (says) announce(says.dataset.says)
  if (element.querySelector('.live.on')) release?.classList.remove('second')
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
  if (source.hasAttribute('data-secret')) keyIsKept()
  const label = button.textContent
  if (label === button.dataset.copied) return
  button.textContent = button.dataset.copied
  setTimeout(() => {
    button.textContent = label
  }, COPIED_SHOWN_MS)
})

// A code is sent as soon as it is complete, once.
for (const input of document.querySelectorAll('input[data-complete]')) {
  input.addEventListener('input', () => {
    const isComplete = input.value.replace(/\D/g, '').length === Number(input.dataset.complete)
    if (!isComplete || input.dataset.completed) return
    input.dataset.completed = 'yes'
    input.form.requestSubmit()
  })
}

// The page of a new key: leaving it asks until the key was copied; its address becomes that of the key's own page, so that
// neither the history nor a reload leads back to the form; and nothing of the key is left in a page that is kept for Back.
const guard = document.querySelector('[data-guards]')
const askBeforeLeaving = event => event.preventDefault()
const release = document.querySelector('[data-releases]')
const keyIsKept = () => {
  release.classList.remove('second')
  removeEventListener('beforeunload', askBeforeLeaving)
}
if (guard) {
  history.replaceState(null, '', guard.dataset.becomes)
  addEventListener('beforeunload', askBeforeLeaving)
  release.addEventListener('click', keyIsKept)
  document.addEventListener('copy', () => {
    if (getSelection().toString().includes(document.getElementById('new-key').textContent)) keyIsKept()
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

/** `0:57` or `1:00:57`. */
function countdown(seconds) {
  const padded = count => String(count).padStart(2, '0')
  const minutes = Math.floor(seconds / 60)
  const hours = Math.floor(minutes / 60)
  return `${hours > 0 ? `${hours}:${padded(minutes % 60)}` : minutes}:${padded(seconds % 60)}`
}

for (const element of document.querySelectorAll('[data-countdown]')) {
  const until = performance.now() + Number(element.dataset.countdown) * 1000
  const button = document.getElementById(element.dataset.enables)
  const tick = () => {
    const left = Math.ceil((until - performance.now()) / 1000)
    button.disabled = left > 0
    element.textContent = left > 0 ? element.dataset.words.replace('{}', countdown(left)) : ''
    if (left > 0) setTimeout(tick, 250)
  }
  tick()
}

// After a sign-in by a link in one tab, the tab that waits for it continues. The message contains no data.
const tabs = new BroadcastChannel('keyway')
if (document.body.hasAttribute('data-signed-in')) tabs.postMessage('signed in')
for (const element of document.querySelectorAll('[data-goes-on]')) {
  tabs.addEventListener('message', () => {
    if (!element.querySelector('input.code').value) location.replace(element.dataset.goesOn)
  })
}

// Browsers limit the connections to one server, so hidden tabs close their stream. `onLink` is told whether it is open: not
// while it is renewed, which takes a moment.
const LOST_AFTER_MS = 3000
const REOPENED_AFTER_MS = 5000
function listen(url, listeners, onLink) {
  const address = new URL(url, location.href)
  let stream = null
  let lost = 0
  let reopening = 0
  const close = () => {
    clearTimeout(lost)
    clearTimeout(reopening)
    lost = reopening = 0
    stream?.close()
    stream = null
  }
  const open = () => {
    stream = new EventSource(address)
    stream.addEventListener('open', () => {
      clearTimeout(lost)
      lost = 0
      onLink(true)
    })
    stream.addEventListener('error', () => {
      lost ||= setTimeout(() => onLink(false), LOST_AFTER_MS)
      // A proxy's answer, for example, ends a stream for good.
      if (stream.readyState === EventSource.CLOSED && !reopening)
        reopening = setTimeout(() => {
          reopening = 0
          open()
        }, REOPENED_AFTER_MS)
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
  const follow = () => {
    if (document.hidden) close()
    else if (!stream) open()
  }
  const stop = () => {
    document.removeEventListener('visibilitychange', follow)
    close()
  }
  document.addEventListener('visibilitychange', follow)
  follow()
  return stop
}

// The dots of keys that have a live connection.
for (const list of document.querySelectorAll('[data-live-keys]')) {
  listen(
    list.dataset.liveKeys,
    {
      live(event) {
        const live = event.data.split(' ')
        for (const dot of list.querySelectorAll('[data-dot]')) {
          // Before the link to the key.
          const isOn = live.includes(dot.nextElementSibling.pathname.split('/').pop())
          dot.classList.toggle('on', isOn)
          dot.title = isOn ? list.dataset.says : ''
          dot.innerHTML = isOn ? `<span class="unseen">${dot.title}</span>` : ''
        }
      },
    },
    isOpen => list.classList.toggle('unsure', !isOpen),
  )
}

// Counts the selected rows of a list, and selects all, or none where all are.
for (const form of document.querySelectorAll('form[data-selection]')) {
  // Not form.id, which are its boxes.
  const id = form.dataset.selection
  const boxes = [...document.querySelectorAll(`input[name=id][form="${id}"]`)]
  const selectors = document.querySelectorAll(`[data-selects="${id}"]`)
  const place = form.querySelector('[data-words]')
  const show = () => {
    const count = boxes.filter(box => box.checked).length
    place.textContent = count ? place.dataset.words.replace('{}', count.toLocaleString(locale)) : ''
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
      show()
    })
  }
  for (const box of boxes) box.addEventListener('change', show)
  // Also after Back, which selects what was selected.
  addEventListener('pageshow', show)
}

// Live parts: the server sends the whole part whenever it changed. What may be out of date is greyed out.
for (const element of document.querySelectorAll('[data-stream]')) {
  const stop = listen(
    element.dataset.stream,
    { list: event => show(element, event.data), announce: event => announce(event.data) },
    isOpen => {
      if (element.classList.contains('lost') === !isOpen) return
      element.classList.toggle('lost', !isOpen)
      announce(isOpen ? '' : element.dataset.lost)
    },
  )
  element.addEventListener('final', stop)
}
