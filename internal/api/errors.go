package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live"
	"github.com/fiscalhub/fiscalhub/internal/notify"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

// fault is an error as the integrator is told it. The code is one of the
// contract's closed list; the status may be more specific.
type fault struct {
	status  int
	code    string
	message string
	details fiscal.Problems
	headers map[string]string
	invoice string // of an external id conflict
	shed    bool   // refused for want of room, not for what was asked
}

func (f *fault) Error() string { return f.code + ": " + f.message }

func badRequest(message string, details ...fiscal.Problem) *fault {
	return &fault{status: http.StatusBadRequest, code: "bad_request", message: message, details: details}
}

func unauthorized(challenge, message string) *fault {
	return &fault{status: http.StatusUnauthorized, code: "unauthorized", message: message,
		headers: map[string]string{"WWW-Authenticate": challenge}}
}

func forbidden(format string, args ...any) *fault {
	return &fault{status: http.StatusForbidden, code: "forbidden", message: fmt.Sprintf(format, args...)}
}

func insufficientScope(missing []string) *fault {
	f := forbidden("the credential lacks the scope %s", strings.Join(missing, " and "))
	f.headers = map[string]string{
		"WWW-Authenticate": `Bearer error="insufficient_scope", scope="` + strings.Join(missing, " ") + `"`,
	}
	return f
}

func notFound() *fault {
	return &fault{status: http.StatusNotFound, code: "not_found", message: "there is no such resource"}
}

func methodNotAllowed(allow string) *fault {
	f := badRequest("this path answers " + allow)
	f.status, f.headers = http.StatusMethodNotAllowed, map[string]string{"Allow": allow}
	return f
}

func tooLarge(limit int64) *fault {
	f := badRequest(fmt.Sprintf("the body is larger than %d bytes", limit))
	f.status, f.headers = http.StatusRequestEntityTooLarge, map[string]string{"Connection": "close"}
	return f
}

func tooSlow() *fault {
	f := badRequest("the body did not arrive in time; send the same request again")
	f.status, f.headers = http.StatusRequestTimeout, map[string]string{"Connection": "close"}
	return f
}

func unsupportedMedia(message string) *fault {
	f := badRequest(message)
	f.status = http.StatusUnsupportedMediaType
	return f
}

func rateLimited(seconds int64, message string) *fault {
	return &fault{status: http.StatusTooManyRequests, code: "rate_limited", message: message,
		headers: map[string]string{"Retry-After": strconv.FormatInt(max(1, seconds), 10)}}
}

func unavailable(message string) *fault {
	return &fault{status: http.StatusServiceUnavailable, code: "service_unavailable", message: message,
		headers: map[string]string{"Retry-After": "1"}}
}

// invalid says what is wrong with a body that is no invoice.
func invalid(details ...fiscal.Problem) *fault {
	return &fault{status: http.StatusUnprocessableEntity, code: "validation_error",
		message: "the request is not valid; see details", details: details}
}

// crowded marks a refusal as one for want of room.
func crowded(f *fault) *fault {
	f.shed = true
	return f
}

func artifactNotReady(final bool) *fault {
	f := &fault{status: http.StatusConflict, code: "artifact_not_ready",
		message: "the document has no such artifact in this environment or state"}
	if !final {
		f.headers = map[string]string{"Retry-After": "5"}
	}
	return f
}

var errPanic = errors.New("panic")

// faultOf is the one table from errors to answers. What is not in it is a bug.
func faultOf(err error) *fault {
	var (
		known    *fault
		problems fiscal.Problems
		syntax   *strictjson.SyntaxError
		conflict *pipeline.ConflictError
		notReady *pipeline.NotReadyError
		unfit    *live.InvalidMessageError
	)
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &syntax):
		return &fault{status: http.StatusBadRequest, code: "invalid_json", message: syntax.Error()}
	case errors.As(err, &notReady):
		return &fault{status: http.StatusConflict, code: "operational_readiness_failed",
			message: "the taxpayer cannot issue yet; see details, and send the same request again once they are settled",
			details: notReady.Problems}
	case errors.As(err, &problems):
		return &fault{status: http.StatusUnprocessableEntity, code: "validation_error",
			message: "the invoice is not valid; see details", details: problems}
	case errors.Is(err, pipeline.ErrMismatch), errors.Is(err, notify.ErrMismatch):
		return &fault{status: http.StatusConflict, code: "idempotency_mismatch",
			message: "this Idempotency-Key was used with a different request; use a new key for a new one"}
	case errors.Is(err, store.ErrTooManyEndpoints):
		return invalid(fiscal.Problem{Code: fiscal.CodeTooManyItems, Message: store.ErrTooManyEndpoints.Error()})
	case errors.As(err, &unfit):
		return invalid(fiscal.Problem{Field: "data.xml_base64", Code: fiscal.CodeInvalidFormat, Message: unfit.Reason})
	case errors.As(err, &conflict):
		return &fault{status: http.StatusConflict, code: "external_id_conflict",
			message: "an invoice with this external_id exists already", invoice: conflict.InvoiceID,
			details: fiscal.Problems{{Field: "external_id", Code: fiscal.CodeAlreadyExists, Message: "used by another invoice of this taxpayer"}}}
	case errors.Is(err, store.ErrNotFound):
		return notFound()
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return unavailable("the service cannot complete this now; send the same request again")
	}
	return &fault{status: http.StatusInternalServerError, code: "internal_error",
		message: "internal failure; keep the request_id for support"}
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

// refuse answers with an error, unless something has been answered.
func (a *API) refuse(x *exchange, err error) {
	if x.status != 0 {
		return
	}
	f := faultOf(err)
	gone := x.r.Context().Err() != nil // nobody to fail
	if f.status >= http.StatusInternalServerError && !gone && !errors.As(err, new(*fault)) {
		a.Log.Error("request failed", "request_id", x.id, "route", x.route, "status", f.status, "error", err.Error())
	}
	if !x.authenticated {
		a.anonymous(x)
	}
	for name, value := range f.headers {
		x.w.Header().Set(name, value)
	}
	if f.invoice != "" && x.may(readInvoices) {
		x.w.Header().Set("Location", pipeline.InvoicePath(store.Invoice{Scope: x.scope, ID: f.invoice}))
	}
	details := make([]detail, len(f.details))
	for i, p := range f.details {
		details[i] = detail(p)
	}
	x.code = f.code
	body, err := strictjson.Encode(errorEnvelope{errorBody{f.code, f.message, x.id, details}})
	if err != nil {
		a.Log.Error("error could not be encoded", "request_id", x.id, "error", err.Error())
	}
	x.write(f.status, body)
	x.shed = f.shed
}
