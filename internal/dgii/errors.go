package dgii

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/cause"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// A RetryAfterError is in the chain of an error when the caller should wait
// before it tries again: the authority asked to wait, a circuit is open, or the
// authority has refused the signer.
type RetryAfterError struct{ Delay time.Duration }

func (e *RetryAfterError) Error() string {
	return "try again in " + e.Delay.Round(time.Millisecond).String()
}

// Wait returns how long to wait.
func (e *RetryAfterError) Wait() time.Duration { return e.Delay }

// A callError is the error of a call that gave no answer. It wraps exactly one of
// the sentinel errors of fiscal, and the cause if there is one.
type callError struct {
	kind    error // the sentinel
	service string
	text    string
	cause   error
	// outage is true when the service itself does not work. The circuit breaker
	// counts outages, and not the problems of one document.
	outage bool
	// neutral is true when the response shows neither that the service works nor
	// that it does not: HTTP 429, or a page that may mean that it does not exist.
	neutral bool
	// uncalled is true when the service was not called: its circuit is open, it has
	// asked to wait, or no slot is free.
	uncalled bool
}

// Is reports that an error is also fiscal.ErrOutage when the service does not work
// or was not called.
func (e *callError) Is(target error) bool {
	return target == fiscal.ErrOutage && (e.outage || e.uncalled)
}

func (e *callError) Error() string {
	s := "dgii: " + e.service + ": " + e.kind.Error()
	if e.service == endpointService { // the text of the sentinel names the authority
		s = "dgii: the buyer's receiver did not acknowledge the document"
	}
	return strings.Join(append([]string{s}, e.details()...), ": ")
}

func (e *callError) details() (all []string) {
	if e.text != "" {
		all = append(all, e.text)
	}
	if e.cause != nil {
		all = append(all, e.cause.Error())
	}
	return all
}

// Cause says why the call gave no answer.
func (e *callError) Cause() cause.Cause {
	details := strings.Join(e.details(), ": ")
	switch {
	case e.service == endpointService:
		return cause.New(cause.CallReceiver, details)
	case errors.Is(e.kind, fiscal.ErrNotReceived):
		return cause.New(cause.CallNotReceived, e.service, details)
	case errors.Is(e.kind, fiscal.ErrInconclusive):
		return cause.New(cause.CallInconclusive, e.service, details)
	case errors.Is(e.kind, fiscal.ErrAbsent):
		return cause.New(cause.CallAbsent, e.service, details)
	case errors.Is(e.kind, fiscal.ErrNotDelegated):
		return cause.New(cause.CallNotDelegated, e.service, details)
	}
	return cause.New(cause.CallUnavailable, e.service, details)
}

func (e *callError) Unwrap() []error {
	if e.cause == nil {
		return []error{e.kind}
	}
	return []error{e.kind, e.cause}
}

// withKind returns the error with another sentinel.
func (e *callError) withKind(kind error) *callError {
	changed := *e
	changed.kind = kind
	return &changed
}

func (s *service) errorf(kind error, format string, args ...any) *callError {
	return &callError{kind: kind, service: s.name, text: fmt.Sprintf(format, args...)}
}

// outagef returns an error that the circuit breaker counts as a failure.
func (s *service) outagef(kind error, format string, args ...any) *callError {
	e := s.errorf(kind, format, args...)
	e.outage = true
	return e
}

// resultOf returns what the error of a call that got a response says about the
// service.
func resultOf(err error) callResult {
	e, ok := errors.AsType[*callError](err)
	switch {
	case ok && e.outage:
		return failed
	case ok && e.neutral:
		return ignored
	default:
		return succeeded
	}
}

// openError returns the error of a call that the circuit breaker prevents.
func (s *service) openError(wait *RetryAfterError) error {
	return &callError{kind: fiscal.ErrNotReceived, service: s.name, text: "the service is not called for now", cause: wait, uncalled: true}
}

// asUnavailable converts the error of a look-up: every error becomes
// ErrUnavailable, but ErrAbsent stays as it is. ErrNotReceived, for example, has a
// meaning for submissions only.
func asUnavailable(err error) error {
	e, ok := errors.AsType[*callError](err)
	if !ok || errors.Is(err, fiscal.ErrAbsent) || errors.Is(err, fiscal.ErrUnavailable) {
		return err
	}
	return e.withKind(fiscal.ErrUnavailable)
}

// normalizeText returns a text for comparison: in lower case, without accents, and
// with single spaces between the words.
func normalizeText(s string) string {
	s = strings.Map(func(r rune) rune {
		if r >= '\u0300' && r <= '\u036f' { // combining accents
			return -1
		}
		return r
	}, strings.ToLower(s))
	s = strings.NewReplacer("á", "a", "é", "e", "í", "i", "ó", "o", "ú", "u", "ü", "u", "ñ", "n").Replace(s)
	return strings.Join(strings.Fields(s), " ")
}

// saysNotDelegated reports whether a message says that the signer is not
// delegated. The authority has no code for it, only words.
func saysNotDelegated(messages []fiscal.Message) bool {
	for _, m := range messages {
		if strings.Contains(normalizeText(m.Text), "delegad") {
			return true
		}
	}
	return false
}
