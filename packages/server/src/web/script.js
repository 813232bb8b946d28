// Comfort only: every page works without this file. No token is ever kept where a script can read it later.

document.documentElement.classList.add('js')

// The link's token leaves the address bar and the history at once; the form on the page still holds it. What was
// just done is said once, and not again after a reload.
const here = new URL(location.href)
if (here.pathname === '/verify') history.replaceState(null, '', '/verify')
else if (here.searchParams.has('done')) {
  here.searchParams.delete('done')
  history.replaceState(null, '', here)
}

function inTheirOwnZone(root) {
  for (const element of root.querySelectorAll('time')) {
    const date = new Date(element.dateTime)
    const isDay = element.classList.contains('day')
    element.title = date.toLocaleString(undefined, { dateStyle: 'full', timeStyle: 'long' })
    element.textContent = isDay
      ? date.toLocaleDateString(undefined, { dateStyle: 'medium' })
      : date.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' })
  }
}
inTheirOwnZone(document)

// A form that is on its way is not sent twice by a second tap.
const RESENT_AFTER_MS = 10_000
for (const form of document.querySelectorAll('form')) {
  form.addEventListener('submit', event => {
    if (form.dataset.sent) return event.preventDefault()
    form.dataset.sent = 'yes'
    setTimeout(() => delete form.dataset.sent, RESENT_AFTER_MS)
  })
}
addEventListener('pageshow', event => {
  if (event.persisted) for (const form of document.forms) delete form.dataset.sent
})

document.querySelector('form[data-auto-submit]')?.requestSubmit()

for (const button of document.querySelectorAll('button[data-copy]')) {
  const source = document.getElementById(button.dataset.copy)
  button.addEventListener('click', async () => {
    getSelection().selectAllChildren(source)
    await navigator.clipboard?.writeText(source.textContent)
    if (!navigator.clipboard) return
    const label = button.textContent
    button.textContent = button.dataset.copied
    setTimeout(() => {
      button.textContent = label
    }, 2000)
  })
}

for (const element of document.querySelectorAll('[data-countdown]')) {
  const until = performance.now() + Number(element.dataset.countdown) * 1000
  const button = document.getElementById(element.dataset.enables)
  const tick = () => {
    const left = Math.ceil((until - performance.now()) / 1000)
    button.disabled = left > 0
    const clock = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, '0')}`
    element.textContent = left > 0 ? element.dataset.words.replace('{}', clock) : ''
    if (left > 0) setTimeout(tick, 250)
  }
  tick()
}

// Signing in by a link in one tab lets the tab that waits for it go on. Nothing but the fact is told.
const tabs = new BroadcastChannel('keyway')
if (document.body.hasAttribute('data-signed-in')) tabs.postMessage('signed in')
for (const element of document.querySelectorAll('[data-goes-on]')) {
  tabs.addEventListener('message', () => {
    if (!element.querySelector('input.code').value) location.replace(element.dataset.goesOn)
  })
}

// A browser opens few connections to one server, so a tab that nobody looks at holds none.
function listen(url, listeners) {
  let stream = null
  const close = () => {
    stream?.close()
    stream = null
  }
  const follow = () => {
    if (document.hidden) return close()
    if (stream) return
    stream = new EventSource(url)
    stream.addEventListener('ended', () => {
      close()
      location.reload()
    })
    for (const [name, listener] of Object.entries(listeners)) stream.addEventListener(name, listener)
  }
  const stop = () => {
    document.removeEventListener('visibilitychange', follow)
    close()
  }
  document.addEventListener('visibilitychange', follow)
  follow()
  return stop
}

// What the server shows of a live list, kept up to date: it sends the whole list whenever it changed.
for (const element of document.querySelectorAll('[data-stream]')) {
  const said = document.querySelector('[data-said]')
  listen(element.dataset.stream, {
    list(event) {
      const focused = document.activeElement?.closest('[data-row]')
      const position = [...(focused?.querySelectorAll('a, button') ?? [])].indexOf(document.activeElement)
      element.innerHTML = event.data
      inTheirOwnZone(element)
      if (focused) {
        const same = element.querySelector(`[data-row="${CSS.escape(focused.dataset.row)}"]`)
        const target = same?.querySelectorAll('a, button')[position] ?? document.getElementById('main')
        target.focus({ preventScroll: true })
      }
    },
    said(event) {
      said.textContent = event.data
    },
  })
}

for (const element of document.querySelectorAll('[data-waits-for]')) {
  const stop = listen(`/agents/events?key=${encodeURIComponent(element.dataset.waitsFor)}`, {
    connected() {
      stop()
      element.textContent = element.dataset.live
      element.classList.add('on')
    },
  })
}
