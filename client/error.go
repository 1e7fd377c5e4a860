package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Code identifies an error of the API.
type Code string

// The codes of the API. An answer of a proxy has none.
const (
	CodeBadRequest           Code = "bad_request"
	CodeInvalidJSON          Code = "invalid_json"
	CodeValidationError      Code = "validation_error"
	CodeUnauthorized         Code = "unauthorized"
	CodeForbidden            Code = "forbidden"
	CodeNotFound             Code = "not_found"
	CodeIdempotencyMismatch  Code = "idempotency_mismatch"
	CodeExternalIDConflict   Code = "external_id_conflict"
	CodeOperationalReadiness Code = "operational_readiness_failed"
	CodeArtifactNotReady     Code = "artifact_not_ready"
	CodeRateLimited          Code = "rate_limited"
	CodeServiceUnavailable   Code = "service_unavailable"
	CodeInternalError        Code = "internal_error"
)

// ErrNoDocument is the error when no fiscal document has the external id.
var ErrNoDocument = errors.New("client: no fiscal document has that external id")

// ErrTooLarge is the error when a request is over 1 MiB, or an answer is larger
// than the client reads.
var ErrTooLarge = errors.New("client: body over the limit")

// Error is an answer that is not a success. Decide by its Code.
type Error struct {
	HTTPStatus int
	Code       Code
	Message    string
	RequestID  string
	Details    []Detail
	// RetryAfter is how long to wait before another try. It is zero when the answer
	// has no such header.
	RetryAfter time.Duration
	// Location is the path of the invoice that already has the external id,
	// when Code is CodeExternalIDConflict and the credential may read it.
	Location string
}

// Detail is one problem of a request.
type Detail struct {
	Field   string `json:"field"` // dotted path, such as lines.0.quantity
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Error describes the answer in one line.
func (e *Error) Error() string {
	text := fmt.Sprintf("client: answer %d", e.HTTPStatus)
	if e.Code != "" {
		text += " " + string(e.Code)
	}
	text += ": " + e.Message
	if len(e.Details) > 0 {
		d := e.Details[0]
		text += fmt.Sprintf(" (%s: %s; %d in all)", d.Field, d.Message, len(e.Details))
	}
	if e.RequestID != "" {
		text += " [" + e.RequestID + "]"
	}
	return text
}

func newError(a answer) *Error {
	var body struct {
		Error struct {
			Code      Code     `json:"code"`
			Message   string   `json:"message"`
			RequestID string   `json:"request_id"`
			Details   []Detail `json:"details"`
		} `json:"error"`
	}
	// The answer of a proxy has another body; its status is the message.
	if err := json.Unmarshal(a.body, &body); err != nil || body.Error.Message == "" {
		body.Error.Message = http.StatusText(a.status)
	}
	e := &Error{
		HTTPStatus: a.status,
		Code:       body.Error.Code,
		Message:    body.Error.Message,
		RequestID:  body.Error.RequestID,
		Details:    body.Error.Details,
		Location:   a.header.Get("Location"),
	}
	if e.RequestID == "" {
		e.RequestID = a.header.Get("X-Request-Id")
	}
	if s, err := strconv.ParseUint(a.header.Get("Retry-After"), 10, 31); err == nil {
		e.RetryAfter = time.Duration(s) * time.Second
	}
	return e
}

// HasCode reports whether err is an answer of the API with this code.
func HasCode(err error, code Code) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}

// ConnectionError is the error when no complete answer arrived. The service may have
// received the request: send a creation again with the same key.
type ConnectionError struct {
	RequestID string
	Err       error
}

// Error names the request, so that support can find it.
func (e *ConnectionError) Error() string {
	return fmt.Sprintf("client: no answer [%s]: %v", e.RequestID, e.Err)
}

// Unwrap returns the error of the connection.
func (e *ConnectionError) Unwrap() error { return e.Err }

// temporary reports whether the same request may succeed later.
func (e *Error) temporary() bool {
	return e.HTTPStatus == http.StatusServiceUnavailable || e.HTTPStatus == http.StatusTooManyRequests
}
