package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand"
	"strconv"
	"sync"
	"time"
)

const (
	backoffBase = 500 * time.Millisecond
	backoffCap  = 20 * time.Second
	jitter      = 500 * time.Millisecond
	stableAfter = 5 * time.Second
	// Minimum interval between renewals, since a key that is about to expire yields ever shorter-lived tokens.
	renewalPause = 5 * time.Second
	// Number of ids that are kept: more than arrive while two connections overlap.
	recentIDs = 1024
)

type agent struct {
	origin, apiKey string
	onMessage      func(frame)

	sends *sends
	mutex sync.Mutex
	token token
	// resumeToken and lastSeq resume the connection; current is the one in use.
	resumeToken string
	lastSeq     int
	current     *connection
	seen        map[string]bool
	seenOrder   []string
	renewal     *time.Timer
	renewedAt   time.Time
	retryAt     time.Time // when a renewal whose exchange failed may be tried again
	stopped     chan error
}

func newAgent(origin, apiKey string) *agent {
	rand.Seed(time.Now().UnixNano())
	return &agent{origin: origin, apiKey: apiKey, sends: newSends(), seen: map[string]bool{}, stopped: make(chan error, 1)}
}

func (a *agent) send(to string, data json.RawMessage, replyTo string) { a.sends.add(to, data, replyTo) }

// run connects, and reconnects until the service refuses permanently.
func (a *agent) run() error {
	go a.stayConnected()
	return <-a.stopped
}

func (a *agent) stop(err error) {
	select {
	case a.stopped <- err:
	default:
	}
}

// stayConnected opens a connection, and the next one after each that ends.
func (a *agent) stayConnected() {
	for attempt := 0; ; attempt++ {
		since := time.Now()
		moved, err := a.connect()
		if moved {
			return // another goroutine goes on with the successor of a drained connection
		}
		var stopped stopError
		if errors.As(err, &stopped) {
			a.stop(err)
			return
		}
		fmt.Println("disconnected:", err)
		if time.Since(since) > stableAfter {
			attempt = 0
		}
		time.Sleep(a.pause(err, attempt))
	}
}

// pause returns how long to wait before the next attempt (docs/hub-protocol.md, section 5).
func (a *agent) pause(err error, attempt int) time.Duration {
	var closed closeError
	if errors.As(err, &closed) && attempt == 0 && (closed.code == 1001 || closed.code == 1012 || a.forgetToken(closed.code)) {
		return time.Duration(rand.Float64() * float64(jitter))
	}
	var retry retryError
	errors.As(err, &retry)
	bound := math.Min(float64(backoffCap), float64(backoffBase)*math.Pow(2, float64(attempt)))
	return retry.after + time.Duration(rand.Float64()*bound)
}

// forgetToken discards the token, and returns true, if the close code reports it as invalid.
func (a *agent) forgetToken(code int) bool {
	if code != 4401 && code != 4408 {
		return false
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.token = token{}
	return true
}

// connect opens a connection and serves it until it ends. It reports whether a successor took over.
func (a *agent) connect() (moved bool, err error) {
	text, err := a.usableToken()
	if err != nil {
		return false, err
	}
	a.mutex.Lock()
	resume := ""
	if a.resumeToken != "" {
		resume = a.resumeToken + "." + strconv.Itoa(a.lastSeq)
	}
	a.mutex.Unlock()
	opened, err := dial(a.origin, text, resume)
	if err != nil {
		return false, endOf(err)
	}
	a.use(opened)
	err = opened.listen(func(received frame) { a.handle(opened, received) })
	a.sends.lost(opened)
	a.mutex.Lock()
	moved = opened.moving
	if a.current == opened {
		a.current = nil
		a.renewal.Stop()
	}
	a.mutex.Unlock()
	err = endOf(err)
	var closed closeError
	if moved && (errors.As(err, &closed) || err == resumedElsewhere) {
		return true, nil
	}
	return false, err
}

// resumedElsewhere is the error of a connection that was resumed over another socket.
var resumedElsewhere = stopError{"4409 resumed_elsewhere"}

// endOf turns permanent closes into a stopError.
func endOf(err error) error {
	var closed closeError
	if !errors.As(err, &closed) {
		return err
	}
	switch closed.code {
	case 4409:
		return resumedElsewhere
	case 1009, 4400, 4403, 4410:
		return stopError{closed.Error()}
	}
	return closed
}

func (a *agent) use(opened *connection) {
	ready := opened.ready
	a.mutex.Lock()
	resumed := ready.Resumed && a.resumeToken != ""
	a.resumeToken = ready.ResumeToken
	if !resumed {
		a.lastSeq = 0
	}
	if a.renewal != nil {
		a.renewal.Stop()
	}
	a.current = opened
	a.scheduleRenewal(opened, ready.ExpiresIn)
	a.mutex.Unlock()
	fmt.Println("connected, resumed:", resumed)
	a.sends.use(opened, resumed, ready.ResumeToken != "")
}

func (a *agent) handle(from *connection, received frame) {
	switch received.Type {
	case "message":
		a.receive(from, received)
	case "sent":
		a.sends.settle(received.ID)
	case "error":
		if received.Code == "rate_limited" || received.Code == "out_of_order" {
			a.sends.repeat(received.ID)
		} else if received.ID != "" {
			fmt.Println("refused:", received.Code)
			a.sends.settle(received.ID)
		}
	case "token_accepted":
		a.mutex.Lock()
		a.scheduleRenewal(from, received.ExpiresIn)
		a.mutex.Unlock()
	case "token_expiring":
		a.mutex.Lock()
		a.renewAfter(from, 0)
		a.mutex.Unlock()
	case "draining":
		a.mutex.Lock()
		isFirst := !from.moving
		from.moving = true
		a.mutex.Unlock()
		if isFirst {
			go a.stayConnected() // make before break: the old connection is read until it closes
		}
	}
}

// receive passes on a message once, although it may arrive over two connections, or again after a resumption.
func (a *agent) receive(from *connection, message frame) {
	a.mutex.Lock()
	isNew := true
	if message.Seq > 0 && a.current == from {
		isNew = message.Seq > a.lastSeq
		if isNew {
			a.lastSeq = message.Seq
		}
	}
	name := message.From + " " + message.ID
	isNew = isNew && !a.seen[name]
	if isNew {
		a.seen[name] = true
		a.seenOrder = append(a.seenOrder, name)
		if len(a.seenOrder) > recentIDs {
			delete(a.seen, a.seenOrder[0])
			a.seenOrder = a.seenOrder[1:]
		}
	}
	a.mutex.Unlock()
	switch {
	case !isNew:
	case isRequest(message):
		a.send(message.From, noHandler, message.ID)
	default:
		a.onMessage(message)
	}
}

// scheduleRenewal renews at 80 % of the lifetime, less a random 0 to 10 % (docs/hub-protocol.md, section 4).
func (a *agent) scheduleRenewal(of *connection, expiresIn float64) {
	a.renewAfter(of, seconds(expiresIn*(0.8-0.1*rand.Float64())))
}

func (a *agent) renewAfter(of *connection, wait time.Duration) {
	for _, earliest := range []time.Time{a.renewedAt.Add(renewalPause), a.retryAt} {
		if left := time.Until(earliest); wait < left {
			wait = left
		}
	}
	if a.renewal != nil {
		a.renewal.Stop()
	}
	a.renewal = time.AfterFunc(wait, func() { a.renew(of, 0) })
}

func (a *agent) renew(of *connection, attempt int) {
	a.mutex.Lock()
	a.renewedAt = time.Now()
	a.mutex.Unlock()
	fresh, err := exchange(a.origin, a.apiKey)
	var stopped stopError
	if errors.As(err, &stopped) {
		a.stop(err)
		return
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.current != of {
		return
	}
	if err != nil {
		wait := time.Second + a.pause(err, attempt)
		a.retryAt = time.Now().Add(wait)
		a.renewal.Stop() // `token_expiring` may have come meanwhile
		a.renewal = time.AfterFunc(wait, func() { a.renew(of, attempt+1) })
		return
	}
	a.token = fresh
	_ = of.write(frame{Type: "token", Token: fresh.text})
}

// usableToken returns the cached token while it is usable, or a new one.
func (a *agent) usableToken() (string, error) {
	a.mutex.Lock()
	held := a.token
	a.mutex.Unlock()
	if held.text != "" && time.Now().Before(held.expires) {
		return held.text, nil
	}
	fresh, err := exchange(a.origin, a.apiKey)
	if err != nil {
		return "", err
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.token = fresh
	return fresh.text, nil
}
