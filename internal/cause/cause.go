// Package cause says why something waits, failed or changed. A cause is stored as a kind with
// arguments, and its reader renders it in either language. No program decides by a sentence.
package cause

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// A Cause is a kind with its arguments in their stored form; empty when there is none. A
// sentence that an earlier release has stored is a cause too: one that no kind says is shown
// as it is. A Cause is an error, for what fails because of it.
type Cause string

// heldMark begins the stored form of a cause that needs a person, so that a statement finds
// it. Earlier releases begin their sentences with it.
const heldMark = "held: "

// HeldPattern selects in a LIKE the causes of which Held is true.
const HeldPattern = heldMark + "%"

// stored is the stored form of a cause.
type stored struct {
	Kind string     `json:"kind"`
	Args []argument `json:"args,omitempty"`
}

// An argument is a text, or a text in both languages. It is shown, never parsed.
type argument struct{ lang.Message }

// MarshalJSON writes one text, or an array of the English one and the Spanish one.
func (a argument) MarshalJSON() ([]byte, error) {
	if en, es := a.In(lang.English), a.In(lang.Spanish); en != es {
		return json.Marshal([2]string{en, es})
	}
	return json.Marshal(a.String())
}

// UnmarshalJSON reads what MarshalJSON writes.
func (a *argument) UnmarshalJSON(text []byte) error {
	var both [2]string
	if json.Unmarshal(text, &both) != nil {
		if err := json.Unmarshal(text, &both[0]); err != nil {
			return err
		}
		both[1] = both[0]
	}
	a.Message = lang.Translated(both[0], both[1])
	return nil
}

// New returns a cause. The arguments are values of the verbs of the kind's text; one more is
// a detail that follows the text, unless it is empty. An argument with a text in both
// languages, such as a lang.Message or another Cause, keeps both.
func New(kind Kind, args ...any) Cause {
	s := stored{Kind: kind.code}
	for _, arg := range args {
		s.Args = append(s.Args, argument{lang.Text("%v", "%v").With(arg)})
	}
	text, err := json.Marshal(s)
	if err != nil {
		return Cause(kind.code) // strings always have a JSON form
	}
	if kind.person {
		return Cause(heldMark + string(text))
	}
	return Cause(text)
}

// Of returns the cause of an error: the one that it carries, else its text.
func Of(err error) Cause {
	if c, ok := errors.AsType[Cause](err); ok {
		return c
	}
	if c, ok := errors.AsType[interface {
		error
		Cause() Cause
	}](err); ok {
		return c.Cause()
	}
	return New(Text, lang.OfError(err))
}

// Words are what the authority says, in one line: at most the first three messages.
func Words(messages []string) lang.Message {
	const most = 3
	parts := make([]lang.Message, 0, most+1)
	for _, m := range messages[:min(len(messages), most)] {
		parts = append(parts, lang.Literal(m))
	}
	if more := len(messages) - most; more > 0 {
		parts = append(parts, lang.Messagef("and %d more", "y %d más", more))
	}
	return lang.Join(parts, "; ")
}

// decode returns the parts of a cause; false for a sentence without a kind.
func (c Cause) decode() (s stored, ok bool) {
	text := strings.TrimPrefix(string(c), heldMark)
	if err := json.Unmarshal([]byte(text), &s); err == nil && s.Kind != "" {
		return s, true
	}
	return ofSentence(text)
}

// Kind returns the kind of the cause: Text for a sentence without one.
func (c Cause) Kind() Kind {
	if s, ok := c.decode(); ok {
		return find(s.Kind)
	}
	return Text
}

// Altered reports whether the stored bytes of a document are not what was signed or sent.
func (c Cause) Altered() bool { return c.Kind() == Altered || c.Kind() == SentOtherBytes }

// Held reports whether a person must decide before anything goes on.
func (c Cause) Held() bool { return strings.HasPrefix(string(c), heldMark) }

// In returns the cause in a language, with what to do.
func (c Cause) In(l lang.Language) string {
	s, ok := c.decode()
	if !ok {
		return string(c)
	}
	text := c.Why(l)
	if do := find(s.Kind).do; !do.IsZero() {
		text += ": " + do.In(l)
	}
	if c.Held() {
		text = lang.Messagef("held: %s", "retenido: %s", text).In(l)
	}
	return text
}

// Why is In without what to do.
func (c Cause) Why(l lang.Language) string {
	s, ok := c.decode()
	if !ok {
		return strings.TrimPrefix(string(c), heldMark)
	}
	kind := find(s.Kind)
	args := make([]any, len(s.Args))
	for i, a := range s.Args {
		args[i] = a.Message
	}
	verbs := kind.verbs()
	args = append(args, slices.Repeat([]any{""}, max(0, verbs-len(args)))...)
	text := kind.text.With(args[:verbs]...).In(l)
	for _, a := range s.Args[min(len(s.Args), verbs):] {
		if !a.IsZero() {
			text += kind.separator() + a.In(l)
		}
	}
	return text
}

// String returns the cause in English, with what to do.
func (c Cause) String() string { return c.In(lang.English) }

// Error is String.
func (c Cause) Error() string { return c.String() }
