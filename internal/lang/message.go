package lang

import (
	"errors"
	"fmt"
	"strings"
)

// A Message is a text for people in both languages. Its constructors ask for both, so
// a message never lacks a language. The zero Message is empty.
type Message struct{ english, spanish string }

// Messagef returns a message. The texts are formats of package fmt with the same
// verbs. Without args they are used as they are, so a percent sign needs no escape.
// An argument that has a text in both languages itself, such as a Message, appears
// in the language of the text around it.
//
// Both texts must be literals with the same verbs: a test reads them in the source.
func Messagef(english, spanish string, args ...any) Message {
	return Text(english, spanish).With(args...)
}

// Text returns a message of a table of texts. Its texts are formats with the same verbs, for
// With.
func Text(english, spanish string) Message { return Message{english, spanish} }

// With returns the message whose texts are formats, with args for their verbs. Without args
// it returns the message as it is.
func (m Message) With(args ...any) Message {
	return Message{format(English, m.english, args), format(Spanish, m.spanish, args)}
}

// Texts are messages by key.
type Texts map[string]Message

// Text returns the text of a key in a language, with args for its verbs. It fails when there
// is none.
func (t Texts) Text(l Language, key string, args ...any) (string, error) {
	m, ok := t[key]
	if !ok {
		return "", fmt.Errorf("lang: there is no text %q", key)
	}
	return m.With(args...).In(l), nil
}

// Literal returns a message that is the same in both languages, such as the name of
// a field or the words of the tax authority.
func Literal(text string) Message { return Message{text, text} }

// Translated returns a message of two texts that are not literals, such as a text of a
// library and its translation.
func Translated(english, spanish string) Message { return Message{english, spanish} }

// In returns the text in a language.
func (m Message) In(l Language) string {
	if l == Spanish {
		return m.spanish
	}
	return m.english
}

// String returns the English text, for logs.
func (m Message) String() string { return m.english }

// IsZero reports whether the message is empty.
func (m Message) IsZero() bool { return m == Message{} }

// Equal reports whether two messages have the same texts.
func (m Message) Equal(other Message) bool { return m == other }

// OneOf returns a list of values of which one is to be chosen: "a, b or c".
func OneOf(values []string) Message {
	return Message{list(values, " or "), list(values, " o ")}
}

func list(values []string, last string) string {
	n := len(values) - 1
	if n < 1 {
		return strings.Join(values, "")
	}
	return strings.Join(values[:n], ", ") + last + values[n]
}

// Join returns messages as one message, with a separator between them.
func Join(messages []Message, separator string) Message {
	english, spanish := make([]string, len(messages)), make([]string, len(messages))
	for i, m := range messages {
		english[i], spanish[i] = m.english, m.spanish
	}
	return Message{strings.Join(english, separator), strings.Join(spanish, separator)}
}

// OfError returns the text of an error in both languages.
func OfError(err error) Message { return Message{ErrorText(err, English), ErrorText(err, Spanish)} }

// localized is a value with a text in both languages.
type localized interface{ In(l Language) string }

func format(l Language, text string, args []any) string {
	if len(args) == 0 {
		return text
	}
	local := make([]any, len(args))
	for i, arg := range args {
		switch v := arg.(type) {
		case localized:
			local[i] = v.In(l)
		case error:
			local[i] = ErrorText(v, l)
		default:
			local[i] = arg
		}
	}
	return fmt.Sprintf(text, local...)
}

// messageError is an error whose text is a message.
type messageError struct {
	Message
	causes []error
}

// Errorf returns an error whose text is a message. It wraps the errors among args.
func Errorf(english, spanish string, args ...any) error {
	e := &messageError{Message: Messagef(english, spanish, args...)}
	for _, arg := range args {
		if err, ok := arg.(error); ok {
			e.causes = append(e.causes, err)
		}
	}
	return e
}

// Error returns the English text.
func (e *messageError) Error() string { return e.english }

// Unwrap returns the errors among the arguments of Errorf.
func (e *messageError) Unwrap() []error { return e.causes }

// ErrorText returns the text of an error in a language. Errors that have only one
// text, such as those of the operating system, keep it.
func ErrorText(err error, l Language) string {
	if local, ok := err.(localized); ok {
		return local.In(l)
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || err.Error() != errors.Join(joined.Unwrap()...).Error() {
		return err.Error()
	}
	var lines []string
	for _, one := range joined.Unwrap() {
		lines = append(lines, ErrorText(one, l))
	}
	return strings.Join(lines, "\n")
}
