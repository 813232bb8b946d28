package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

const exchangeTimeout = 8 * time.Second

// stopError is a refusal that is not retryable.
type stopError struct{ reason string }

func (e stopError) Error() string { return "stopped for good: " + e.reason }

// retryError is a failure that may be retried, but not before the time in after has passed.
type retryError struct {
	reason string
	after  time.Duration
}

func (e retryError) Error() string { return e.reason }

// token is an agent token with the end of its lifetime on the monotonic clock.
type token struct {
	text    string
	expires time.Time
}

var exchangeClient = &http.Client{
	Timeout: exchangeTimeout,
	// A redirect would send the key to another address.
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// exchange exchanges an API key for an agent token. Its errors are stopError and retryError.
func exchange(origin, apiKey string) (token, error) {
	body, _ := json.Marshal(map[string]string{"api_key": apiKey})
	asked := time.Now()
	response, err := exchangeClient.Post(origin+"/auth/agent-token", "application/json", bytes.NewReader(body))
	if err != nil {
		return token{}, retryError{reason: err.Error()}
	}
	defer response.Body.Close()
	var answer struct {
		Token     string  `json:"token"`
		ExpiresIn float64 `json:"expires_in"`
		Code      string  `json:"code"`
	}
	err = json.NewDecoder(response.Body).Decode(&answer)
	switch status := response.StatusCode; {
	case status == http.StatusOK && err == nil && answer.Token != "":
		return token{answer.Token, asked.Add(seconds(answer.ExpiresIn))}, nil
	case status == 400 || status == 401 || status == 403:
		return token{}, stopError{answer.Code}
	default:
		wait, _ := strconv.Atoi(response.Header.Get("Retry-After"))
		return token{}, retryError{fmt.Sprintf("%d %s", status, answer.Code), time.Duration(wait) * time.Second}
	}
}

func seconds(count float64) time.Duration { return time.Duration(count * float64(time.Second)) }
