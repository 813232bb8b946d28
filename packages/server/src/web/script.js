// Comfort only: every page works without this file. No token is ever kept where a script can read it later.

// The link's token leaves the address bar and the history at once; the form below still holds it.
if (location.pathname === '/verify') history.replaceState(null, '', '/verify')

for (const element of document.querySelectorAll('time')) {
  const date = new Date(element.dateTime)
  element.title = element.textContent
  element.textContent = date.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' })
}

// A form that was sent is not sent twice by a second tap.
for (const form of document.querySelectorAll('form')) {
  form.addEventListener('submit', event => {
    if (form.dataset.sent) return event.preventDefault()
    form.dataset.sent = 'yes'
    setTimeout(() => delete form.dataset.sent, 4000)
  })
}

document.querySelector('form[data-auto-submit]')?.requestSubmit()

for (const button of document.querySelectorAll('button[data-copy]')) {
  button.hidden = false
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent)
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
  if (button) button.disabled = true
  const tick = () => {
    const left = Math.ceil((until - performance.now()) / 1000)
    element.hidden = left <= 0
    if (left <= 0) {
      if (button) button.disabled = false
      return
    }
    element.textContent = element.dataset.words.replace('{}', left)
    setTimeout(tick, 250)
  }
  tick()
}

// What the server shows of a live list, kept up to date: it sends the whole list whenever it changed.
for (const element of document.querySelectorAll('[data-stream]')) {
  const stream = new EventSource(element.dataset.stream)
  stream.addEventListener('list', event => {
    const focused = document.activeElement?.closest?.('[data-row]')?.dataset.row
    element.innerHTML = event.data
    if (focused) element.querySelector(`[data-row="${CSS.escape(focused)}"] button`)?.focus()
  })
  stream.addEventListener('ended', () => location.reload())
}

for (const element of document.querySelectorAll('[data-waits-for]')) {
  const stream = new EventSource(`/agents/events?key=${encodeURIComponent(element.dataset.waitsFor)}`)
  stream.addEventListener('connected', () => {
    element.textContent = element.dataset.live
    element.classList.add('on')
    stream.close()
  })
}

for (const select of document.querySelectorAll('select[data-reveals]')) {
  const target = document.getElementById(select.dataset.reveals)
  const show = () => {
    target.hidden = select.value !== select.dataset.revealsOn
  }
  select.addEventListener('change', show)
  show()
}
