package main

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

const (
	readyTimeout     = 10 * time.Second
	writeTimeout     = 5 * time.Second
	longestHeartbeat = 25.0
	// pongShare of the heartbeat is how long an answer to a ping may take: 10 s at 25 s.
	pongShare    = 0.4
	lostCode     = 1006
	maxFrameSize = 64 * 1024
)

// closeError has the close code and reason of a connection that ended.
type closeError struct {
	code   int
	reason string
}

func (e closeError) Error() string { return strconv.Itoa(e.code) + " " + e.reason }

// connection is one WebSocket to the hub. Writes may come from several goroutines.
type connection struct {
	socket *websocket.Conn
	mutex  sync.Mutex
	ready  frame
	// moving is set on draining: its successor is connecting.
	moving bool
}

// dial opens a connection and waits for its ready. If resume is not empty, it asks to resume that connection.
func dial(origin, token, resume string) (*connection, error) {
	header := http.Header{"Authorization": {"Bearer " + token}}
	if resume != "" {
		header.Set("Keyway-Resume", resume)
	}
	dialer := websocket.Dialer{HandshakeTimeout: readyTimeout, Subprotocols: []string{"keyway.hub.v1"}}
	socket, _, err := dialer.Dial("ws"+strings.TrimPrefix(origin, "http")+"/hub", header)
	if err != nil {
		return nil, closeError{lostCode, err.Error()}
	}
	opened := &connection{socket: socket}
	socket.SetReadLimit(maxFrameSize)
	_ = socket.SetReadDeadline(time.Now().Add(readyTimeout))
	for opened.ready.Type != "ready" {
		if opened.ready, err = opened.read(); err != nil {
			socket.Close()
			return nil, err
		}
	}
	return opened, nil
}

// listen passes on each frame until the connection ends, and returns the reason. After a silence it sends a ping, since
// TCP does not notice a half-open connection for minutes.
func (c *connection) listen(handle func(frame)) error {
	heartbeat := c.ready.HeartbeatSeconds
	if heartbeat < 1 || heartbeat > longestHeartbeat {
		heartbeat = longestHeartbeat
	}
	silence := time.NewTimer(seconds(heartbeat))
	defer silence.Stop()
	defer c.socket.Close()
	frames, failed := make(chan frame), make(chan error, 1)
	done := make(chan struct{})
	defer close(done)
	_ = c.socket.SetReadDeadline(time.Time{})
	go func() {
		for {
			received, err := c.read()
			if err != nil {
				failed <- err
				return
			}
			select {
			case frames <- received:
			case <-done:
				return
			}
		}
	}()
	isAsked := false
	for {
		select {
		case received := <-frames:
			isAsked = false
			if !silence.Stop() {
				select {
				case <-silence.C:
				default:
				}
			}
			silence.Reset(seconds(heartbeat))
			handle(received)
		case err := <-failed:
			return err
		case <-silence.C:
			if isAsked {
				return closeError{lostCode, "no answer to a ping"}
			}
			isAsked = true
			_ = c.write(frame{Type: "ping"})
			silence.Reset(seconds(math.Max(heartbeat*pongShare, pongShare)))
		}
	}
}

func (c *connection) read() (frame, error) {
	var received frame
	err := c.socket.ReadJSON(&received)
	var closed *websocket.CloseError
	if errors.As(err, &closed) {
		return received, closeError{closed.Code, closed.Text}
	}
	if err != nil {
		return received, closeError{lostCode, err.Error()}
	}
	return received, nil
}

func (c *connection) write(sent frame) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	_ = c.socket.SetWriteDeadline(time.Now().Add(writeTimeout))
	return c.socket.WriteJSON(sent)
}
