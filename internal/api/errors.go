package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live"
	"github.com/fiscalhub/fiscalhub/internal/notify"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

// apiError is an error in the form of the contract. The code is one of a closed
// list; the HTTP status may be more specific.
type apiError struct {
	status  int
	code    string
	message string
	details fiscal.Problems
	headers map[string]string
	invoice string // id of the existing invoice of an external id conflict
	shed    bool   // refused because there was no capacity for it
}

func (e *apiError) Error() string { return e.code + ": " + e.message }

func badRequest(message string, details ...fiscal.Problem) *apiError {
	return &apiError{status: http.StatusBadRequest, code: "bad_request", message: message, details: details}
}

func unauthorized(challenge, message string) *apiError {
	return &apiError{status: http.StatusUnauthorized, code: "unauthorized", message: message,
		headers: map[string]string{"WWW-Authenticate": challenge}}
}

func forbidden(format string, args ...any) *apiError {
	return &apiError{status: http.StatusForbidden, code: "forbidden", message: fmt.Sprintf(format, args...)}
}

// suspended refuses a credential that an operator has suspended, or whose taxpayer or
// environment is suspended.
func suspended(c store.Credential) *apiError {
	switch c.Suspended.Kind() {
	case "taxpayer":
		return forbidden("this taxpayer is suspended; ask the operator of the service")
	case "environment":
		return forbidden("the environment %s is suspended; try again later, or ask the operator of the service", c.Environment)
	}
	return forbidden("this credential is suspended; ask the operator of the service")
}

func insufficientScope(missing []string) *apiError {
	e := forbidden("the credential does not have the scope %s", strings.Join(missing, " and "))
	e.headers = map[string]string{
		"WWW-Authenticate": `Bearer error="insufficient_scope", scope="` + strings.Join(missing, " ") + `"`,
	}
	return e
}

func notFound() *apiError {
	return &apiError{status: http.StatusNotFound, code: "not_found", message: "the resource does not exist"}
}

func methodNotAllowed(allow string) *apiError {
	e := badRequest("this path allows only the methods " + allow)
	e.status, e.headers = http.StatusMethodNotAllowed, map[string]string{"Allow": allow}
	return e
}

// preconditionFailed refuses a request whose If-Match does not match (RFC 9110 §13.1.1).
// The closed list of codes has none for it.
func preconditionFailed() *apiError {
	e := badRequest("If-Match does not name the current state of this resource; read it again, or send the request without If-Match")
	e.status = http.StatusPreconditionFailed
	return e
}

func tooLarge(limit int64) *apiError {
	e := badRequest(fmt.Sprintf("the body is larger than the limit of %d bytes", limit))
	e.status, e.headers = http.StatusRequestEntityTooLarge, map[string]string{"Connection": "close"}
	return e
}

func tooSlow() *apiError {
	e := badRequest("the body did not arrive in time; send the same request again")
	e.status, e.headers = http.StatusRequestTimeout, map[string]string{"Connection": "close"}
	return e
}

func unsupportedMedia(message string) *apiError {
	e := badRequest(message)
	e.status = http.StatusUnsupportedMediaType
	return e
}

func rateLimited(seconds int64, message string) *apiError {
	return &apiError{status: http.StatusTooManyRequests, code: "rate_limited", message: message,
		headers: map[string]string{"Retry-After": strconv.FormatInt(max(1, seconds), 10)}}
}

func unavailable(message string) *apiError {
	return &apiError{status: http.StatusServiceUnavailable, code: "service_unavailable", message: message,
		headers: map[string]string{"Retry-After": "1"}}
}

// invalid returns the problems of a body other than an invoice.
func invalid(details ...fiscal.Problem) *apiError {
	return &apiError{status: http.StatusUnprocessableEntity, code: "validation_error",
		message: "the request is not valid; see details", details: details}
}

// shed marks a refusal as one for lack of capacity.
func shed(e *apiError) *apiError {
	e.shed = true
	return e
}

// artifactNotReady refuses a file that does not exist. A client may ask again
// until the status of the document is final.
func artifactNotReady(final bool) *apiError {
	e := &apiError{status: http.StatusConflict, code: "artifact_not_ready",
		message: "this file of the document does not exist in the current environment or status"}
	if !final {
		e.headers = map[string]string{"Retry-After": "5"}
	}
	return e
}

var errPanic = errors.New("panic")

// toAPIError maps every error to an answer. An error that is not in this table is
// a bug and is answered internal_error.
func toAPIError(err error) *apiError {
	var (
		known          *apiError
		problems       fiscal.Problems
		syntax         *strictjson.SyntaxError
		conflict       *pipeline.ConflictError
		notReady       *pipeline.NotReadyError
		invalidMessage *live.InvalidMessageError
	)
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &syntax):
		return &apiError{status: http.StatusBadRequest, code: "invalid_json", message: syntax.Error()}
	case errors.As(err, &notReady):
		return &apiError{status: http.StatusConflict, code: "operational_readiness_failed",
			message: "the taxpayer cannot issue invoices yet; correct what details lists, then send the same request again",
			details: notReady.Problems}
	case errors.As(err, &problems):
		return &apiError{status: http.StatusUnprocessableEntity, code: "validation_error",
			message: "the invoice is not valid; see details", details: problems}
	case errors.Is(err, pipeline.ErrMismatch), errors.Is(err, notify.ErrMismatch):
		return &apiError{status: http.StatusConflict, code: "idempotency_mismatch",
			message: "this Idempotency-Key was used with a different request; use a new key for a new request"}
	case errors.Is(err, store.ErrTooManyEndpoints):
		return invalid(fiscal.Problem{Code: fiscal.CodeTooManyItems, Message: store.ErrTooManyEndpoints.Error()})
	case errors.As(err, &invalidMessage):
		return invalid(fiscal.Problem{Field: "data.xml_base64", Code: fiscal.CodeInvalidFormat, Message: invalidMessage.Reason})
	case errors.As(err, &conflict):
		return &apiError{status: http.StatusConflict, code: "external_id_conflict",
			message: "an invoice with this external_id already exists", invoice: conflict.InvoiceID,
			details: fiscal.Problems{{Field: "external_id", Code: fiscal.CodeAlreadyExists, Message: "another invoice of this taxpayer has this external_id"}}}
	case errors.Is(err, store.ErrNotFound):
		return notFound()
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return unavailable("the service cannot complete the request now; send the same request again after Retry-After seconds")
	}
	return &apiError{status: http.StatusInternalServerError, code: "internal_error",
		message: "internal error; give the request_id to support"}
}

type errorEnvelope struct {
	Error errorBody `json:"error"`
}

type errorBody struct {
	Code      string   `json:"code"`
	Message   string   `json:"message"`
	RequestID string   `json:"request_id"`
	Details   []detail `json:"details,omitempty"`
}

type detail struct {
	Field   string `json:"field"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// linkTo adds a link to the header Link, which an operation that will be retired has
// already.
func (x *exchange) linkTo(link string) {
	h := x.w.Header()
	h.Set("Link", strings.Join(append(h.Values("Link"), link), ", "))
}

// respondError answers with an error, unless the handler has answered already.
func (a *API) respondError(x *exchange, err error) {
	if x.status != 0 {
		return
	}
	e := toAPIError(a.refusal(x, err))
	for _, name := range []string{"Content-Type", "Content-Disposition", "ETag", "Repr-Digest", "Accept-Ranges"} {
		x.w.Header().Del(name) // of the file that a handler wanted to send
	}
	clientGone := x.r.Context().Err() != nil // its cancelled context explains the error
	if e.status >= http.StatusInternalServerError && !clientGone && !errors.As(err, new(*apiError)) {
		a.log.Error("request failed", "request_id", x.id, "route", x.route, "status", e.status, "error", err.Error())
	}
	if !x.authenticated {
		a.countAnonymous(x)
	}
	for name, value := range e.headers {
		x.w.Header().Set(name, value)
	}
	x.linkTo("</docs#error-" + e.code + `>; rel="help"`)
	if e.invoice != "" && x.hasScope(apikey.InvoicesRead) {
		x.w.Header().Set("Location", pipeline.InvoicePath(store.Invoice{Scope: x.scope, ID: e.invoice}))
	}
	details := make([]detail, len(e.details))
	for i, p := range e.details {
		details[i] = detail(p)
	}
	x.code, x.problems = e.code, e.details
	body, err := strictjson.Encode(errorEnvelope{errorBody{e.code, e.message, x.id, details}})
	if err != nil {
		a.log.Error("cannot encode the error answer; the body is empty", "request_id", x.id, "error", err.Error())
	}
	x.send(e.status, body)
	x.shed = e.shed
}
