// A small agent in Go, written from docs/hub-protocol.md: it renews its token, resumes its connection, numbers its
// sends, and answers each message with an echo. It reads KEYWAY_URL and KEYWAY_API_KEY.
package main

import (
	"errors"
	"fmt"
	"os"
)

// exitStopped is EX_NOPERM: the service refused permanently, so a service manager need not restart the agent.
const exitStopped = 77

func main() {
	agent := newAgent(os.Getenv("KEYWAY_URL"), os.Getenv("KEYWAY_API_KEY"))
	agent.onMessage = func(message frame) {
		fmt.Println(message.From, string(message.Data))
		// Nobody reads an answer to the API, and two echo agents would answer each other forever.
		if message.From != "api" && !isEcho(message.Data) {
			agent.send(message.From, echoOf(message.Data), "")
		}
	}
	err := agent.run()
	fmt.Fprintln(os.Stderr, err)
	var stopped stopError
	if errors.As(err, &stopped) {
		os.Exit(exitStopped)
	}
	os.Exit(1)
}
