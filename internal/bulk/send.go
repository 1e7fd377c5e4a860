package bulk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/client"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// An API creates and reads invoices. *client.Client is one.
type API interface {
	CreateInvoiceJSON(ctx context.Context, idempotencyKey string, body json.RawMessage, opts ...client.CallOption) (client.Response[client.Invoice], error)
	Invoice(ctx context.Context, id string, opts ...client.CallOption) (client.Response[client.Invoice], error)
}

// A Sender sends lines.
type Sender struct {
	API      API
	Journal  *Journal
	Parallel int           // requests at the same time
	Language lang.Language // of the reasons for which the service refuses invoices
	// Progress receives a result after each line. It is called by one goroutine at a time.
	Progress func(Result)

	mu sync.Mutex // held during Progress
}

// Send sends the lines that can be sent and that the journal does not have. It returns
// when all are answered, or with an error when it cannot go on: the service
// does not answer, refuses the API key, or ctx ends. Everything that was answered until
// then is in the journal.
func (s *Sender) Send(ctx context.Context, lines []*Line) error {
	return s.each(ctx, lines, func(l *Line) bool {
		if !l.Problem.IsZero() {
			return false
		}
		known, ok := s.Journal.Result(l)
		return !ok || known.InvoiceID == ""
	}, s.send)
}

// Wait waits until each invoice that was sent has a final status.
func (s *Sender) Wait(ctx context.Context, lines []*Line) error {
	return s.each(ctx, lines, func(l *Line) bool {
		known, ok := s.Journal.Result(l)
		return ok && known.InvoiceID != "" && !final(known.Status)
	}, s.wait)
}

// each runs work for the chosen lines. The first error ends all.
func (s *Sender) each(ctx context.Context, lines []*Line, choose func(*Line) bool, work func(context.Context, *Line) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan *Line)
	var all sync.WaitGroup
	for range max(1, s.Parallel) {
		all.Go(func() {
			for l := range next {
				if err := work(ctx, l); err != nil {
					cancel(err)
				}
			}
		})
	}
	for _, l := range lines {
		if !choose(l) {
			continue
		}
		select {
		case next <- l:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(next)
	all.Wait()
	return context.Cause(ctx)
}

func (s *Sender) send(ctx context.Context, l *Line) error {
	r := Result{Line: l.Number, ExternalID: l.ExternalID}
	made, err := s.API.CreateInvoiceJSON(ctx, l.Key(), l.Body)
	switch {
	case err == nil:
		r.Status, r.InvoiceID = string(made.Data.Status), made.Data.ID
	case refusesInvoice(err):
		r.Status, r.Error = Refused, lang.ErrorText(AnswerError(err), s.Language)
	default:
		return lang.Errorf("line %d: %s", "línea %d: %s", l.Number, AnswerError(err))
	}
	return s.record(l, r)
}

// waitStep is how long the service waits for a verdict before it answers.
const waitStep = 20 * time.Second

func (s *Sender) wait(ctx context.Context, l *Line) error {
	r, _ := s.Journal.Result(l)
	for {
		now, err := s.API.Invoice(ctx, r.InvoiceID, client.WithWait(waitStep))
		if err != nil {
			return lang.Errorf("line %d: %s", "línea %d: %s", l.Number, AnswerError(err))
		}
		r.Status = string(now.Data.Status)
		if final(r.Status) {
			return s.record(l, r)
		}
		// The service may answer at once. Then this does not ask again and again.
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (s *Sender) record(l *Line, r Result) error {
	if err := s.Journal.Add(l, r); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Progress(r)
	return nil
}

// refusesInvoice reports whether the service refuses this invoice alone. It may still take
// others.
func refusesInvoice(err error) bool {
	var e *client.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.HTTPStatus {
	case http.StatusBadRequest, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return true
	default:
		return false
	}
}

func final(status string) bool { return fiscal.Status(status).Final() }

// Results returns the result of every line, in the order of the file. Without a journal
// they are the results of the check alone. The problems that the check found are in a
// language; the errors in the journal are in the language of the answers.
func Results(lines []*Line, j *Journal, in lang.Language) []Result {
	out := make([]Result, 0, len(lines))
	for _, l := range lines {
		out = append(out, result(l, j, in))
	}
	return out
}

func result(l *Line, j *Journal, in lang.Language) Result {
	if !l.Problem.IsZero() {
		return Result{Line: l.Number, ExternalID: l.ExternalID, Status: Refused, Error: l.Problem.In(in)}
	}
	if j != nil {
		if known, ok := j.Result(l); ok {
			return known
		}
	}
	return Result{Line: l.Number, ExternalID: l.ExternalID, Status: NotSent}
}

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
