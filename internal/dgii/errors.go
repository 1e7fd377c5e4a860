package dgii

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// RetryAfter is in the chain of an error that says when another try makes
// sense: the authority asked to wait, a circuit is open, or a refusal is being
// waited out.
type RetryAfter struct{ After time.Duration }

func (r *RetryAfter) Error() string {
	return "try again in " + r.After.Round(time.Millisecond).String()
}

// Wait is how long to wait.
func (r *RetryAfter) Wait() time.Duration { return r.After }

// A fault is how an exchange ended without an answer: exactly one of the
// sentinels of fiscal, and what was met.
type fault struct {
	kind    error
	service string
	text    string
	cause   error
	// sick tells that the service itself does not work, which its circuit
	// counts; what is wrong with one document is not that.
	sick bool
}

func (f *fault) Error() string {
	s := "dgii: " + f.service + ": " + f.kind.Error()
	if f.service == peerService { // the sentinel speaks of the authority
		s = "dgii: the buyer's receiver does not acknowledge"
	}
	if f.text != "" {
		s += ": " + f.text
	}
	if f.cause != nil {
		s += ": " + f.cause.Error()
	}
	return s
}

func (f *fault) Unwrap() []error {
	if f.cause == nil {
		return []error{f.kind}
	}
	return []error{f.kind, f.cause}
}

// as is the fault under another sentinel: what was not received when sending is
// merely unavailable when asking.
func (f *fault) as(kind error) *fault {
	g := *f
	g.kind = kind
	return &g
}

func (s *service) fault(kind error, format string, args ...any) *fault {
	return &fault{kind: kind, service: s.name, text: fmt.Sprintf(format, args...)}
}

// sick is a fault of the service itself.
func (s *service) sick(kind error, format string, args ...any) *fault {
	f := s.fault(kind, format, args...)
	f.sick = true
	return f
}

// unavailable turns whatever a call met into the one thing that it means for a
// look-up. What is absent stays absent.
func unavailable(err error) error {
	f, ok := errors.AsType[*fault](err)
	if !ok || errors.Is(err, fiscal.ErrAbsent) || errors.Is(err, fiscal.ErrUnavailable) {
		return err
	}
	return f.as(fiscal.ErrUnavailable)
}

// folded is a text in lower case, without accents and superfluous space, for
// comparison.
func folded(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= '\u0300' && r <= '\u036f': // accents that stand on their own
			return -1
		default:
			return r
		}
	}, strings.ToLower(s))
	s = strings.NewReplacer("á", "a", "é", "e", "í", "i", "ó", "o", "ú", "u", "ü", "u", "ñ", "n").Replace(s)
	return strings.Join(strings.Fields(s), " ")
}

// aboutDelegation tells whether messages say that the signer is not delegated.
func aboutDelegation(messages []fiscal.Message) bool {
	for _, m := range messages {
		if strings.Contains(folded(m.Text), "delegad") {
			return true
		}
	}
	return false
}
