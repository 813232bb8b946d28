// Progressive enhancement: every page works without this file. Tokens are never stored where a script could read them.

document.documentElement.classList.add('js')

// Removes the link's token from the address bar and the history; the form still has it. Removes `done`, so that a reload
// does not repeat the notice.
const here = new URL(location.href)
if (here.pathname === '/verify') history.replaceState(null, '', '/verify')
else if (here.searchParams.has('done')) {
  here.searchParams.delete('done')
  history.replaceState(null, '', here)
}

/** Shows times in the reader's time zone and language. */
function localizeTimes(root) {
  for (const element of root.querySelectorAll('time')) {
    const date = new Date(element.dateTime)
    const isDay = element.classList.contains('day')
    element.title = date.toLocaleString(undefined, { dateStyle: 'full', timeStyle: 'long' })
    element.textContent = isDay
      ? date.toLocaleDateString(undefined, { dateStyle: 'medium' })
      : date.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' })
  }
}
localizeTimes(document)

// Ignores a second tap while a form is being submitted.
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

// After a sign-in by a link in one tab, the tab that waits for it continues. The message contains no data.
const tabs = new BroadcastChannel('keyway')
if (document.body.hasAttribute('data-signed-in')) tabs.postMessage('signed in')
for (const element of document.querySelectorAll('[data-goes-on]')) {
  tabs.addEventListener('message', () => {
    if (!element.querySelector('input.code').value) location.replace(element.dataset.goesOn)
  })
}

// Browsers limit the connections to one server, so hidden tabs close their stream.
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

// Live lists: the server sends the whole list whenever it changed.
for (const element of document.querySelectorAll('[data-stream]')) {
  const announcement = document.querySelector('[data-announce]')
  listen(element.dataset.stream, {
    list(event) {
      const focused = document.activeElement?.closest('[data-row]')
      const position = [...(focused?.querySelectorAll('a, button') ?? [])].indexOf(document.activeElement)
      element.innerHTML = event.data
      localizeTimes(element)
      if (focused) {
        const same = element.querySelector(`[data-row="${CSS.escape(focused.dataset.row)}"]`)
        const target = same?.querySelectorAll('a, button')[position] ?? document.getElementById('main')
        target.focus({ preventScroll: true })
      }
    },
    announce(event) {
      announcement.textContent = event.data
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
