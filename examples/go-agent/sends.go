package main

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"sync"
	"time"
)

// window is how many messages may be unacknowledged at a time.
const window = 64

const rateLimitPause = time.Second

type pendingSend struct {
	frame  frame
	sentOn *connection
}

// sends are the messages that the hub has not acknowledged, in order. Their sequence numbers belong to one connection
// and to those that resume it.
type sends struct {
	mutex    sync.Mutex
	pending  []*pendingSend
	on       *connection
	nextSeq  int
	numbered bool
	paused   bool
	prefix   string
	count    int
}

func newSends() *sends {
	random := make([]byte, 16)
	if _, err := rand.Read(random); err != nil {
		panic(err)
	}
	return &sends{prefix: hex.EncodeToString(random)}
}

func (s *sends) add(to string, data json.RawMessage, replyTo string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.count++
	id := s.prefix + "-" + strconv.Itoa(s.count)
	s.pending = append(s.pending, &pendingSend{frame: frame{Type: "send", ID: id, To: to, Data: data, ReplyTo: replyTo}})
	s.flush()
}

// use sends over this connection from now on. Sequence numbers begin at 1 unless it resumes the previous one.
func (s *sends) use(on *connection, resumed, numbered bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.on, s.numbered = on, numbered
	if !resumed {
		s.nextSeq = 1
	}
	for _, each := range s.pending {
		each.sentOn = nil
		if !resumed {
			each.frame.Seq = 0
		}
	}
	s.flush()
}

func (s *sends) lost(on *connection) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.on == on {
		s.on = nil
	}
}

// settle removes a message that was acknowledged or refused permanently.
func (s *sends) settle(id string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for index, each := range s.pending {
		if each.frame.ID == id {
			s.pending = append(s.pending[:index], s.pending[index+1:]...)
			break
		}
	}
	s.flush()
}

// repeat sends this message again after a pause, and with sequence numbers also all messages after it.
func (s *sends) repeat(id string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	found := false
	for _, each := range s.pending {
		if each.frame.ID == id {
			found = true
			each.sentOn = nil
		} else if found && s.numbered {
			each.sentOn = nil
		}
	}
	if s.paused {
		return
	}
	s.paused = true
	time.AfterFunc(rateLimitPause, func() {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.paused = false
		s.flush()
	})
}

func (s *sends) flush() {
	if s.on == nil || s.paused {
		return
	}
	for index, each := range s.pending {
		if index >= window {
			return
		}
		if each.sentOn == s.on {
			continue
		}
		if each.frame.Seq == 0 && s.numbered {
			each.frame.Seq = s.nextSeq
			s.nextSeq++
		}
		if s.on.write(each.frame) != nil {
			return
		}
		each.sentOn = s.on
	}
}
