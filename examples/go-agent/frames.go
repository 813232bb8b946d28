package main

import (
	"encoding/json"
	"strings"
)

// frame has the fields of all frame types; unknown fields are skipped.
type frame struct {
	Type             string          `json:"type"`
	ID               string          `json:"id,omitempty"`
	To               string          `json:"to,omitempty"`
	From             string          `json:"from,omitempty"`
	Data             json.RawMessage `json:"data,omitempty"`
	ReplyTo          string          `json:"reply_to,omitempty"`
	Seq              int             `json:"seq,omitempty"`
	Token            string          `json:"token,omitempty"`
	Code             string          `json:"code,omitempty"`
	ExpiresIn        float64         `json:"expires_in,omitempty"`
	HeartbeatSeconds float64         `json:"heartbeat_seconds,omitempty"`
	ResumeToken      string          `json:"resume_token,omitempty"`
	Resumed          bool            `json:"resumed,omitempty"`
}

const requestPrefix = "request."

var noHandler = json.RawMessage(`{"error":{"code":"no_handler","message":"This agent answers no requests."}}`)

func isRequest(message frame) bool { return strings.HasPrefix(message.ID, requestPrefix) }

func isEcho(data json.RawMessage) bool {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(data, &fields)
	_, found := fields["echo"]
	return found
}

func echoOf(data json.RawMessage) json.RawMessage {
	return json.RawMessage(`{"echo":` + string(data) + `}`)
}
