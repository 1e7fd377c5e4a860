package bulk

import (
	"errors"
	"fmt"

	"github.com/fiscalhub/fiscalhub/client"
	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// An answerError is an error of the client, in both languages.
type answerError struct {
	lang.Message
	cause error
}

// Error returns the English text.
func (e *answerError) Error() string { return e.String() }

// Unwrap returns the error of the client.
func (e *answerError) Unwrap() error { return e.cause }

// AnswerError says in both languages what the service answered to a request that failed,
// or that it did not answer. Other errors stay as they are.
func AnswerError(err error) error {
	var (
		answer *client.Error
		none   *client.ConnectionError
	)
	switch {
	case errors.As(err, &none):
		return &answerError{cause: err, Message: lang.Messagef("the service does not answer: %s [%s]", "el servicio no responde: %s [%s]", none.Err, none.RequestID)}
	case !errors.As(err, &answer):
		return err
	}
	text := lang.Literal(answer.Message)
	if len(answer.Details) > 0 {
		first := answer.Details[0]
		text = lang.Messagef("%s (%s: %s; %d in all)", "%s (%s: %s; %d en total)", text, first.Field, first.Message, len(answer.Details))
	}
	request := ""
	if answer.RequestID != "" {
		request = fmt.Sprintf(" [%s]", answer.RequestID)
	}
	return &answerError{cause: err, Message: lang.Messagef("the service answered %d %s: %s%s", "el servicio respondió %d %s: %s%s",
		answer.HTTPStatus, answer.Code, text, request)}
}
