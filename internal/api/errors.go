package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/inbox"
	"github.com/fiscalhub/fiscalhub/internal/lang"
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
	message lang.Message
	details fiscal.Problems
	headers map[string]string
	invoice string // id of the existing invoice of an external id conflict
	shed    bool   // refused because there was no capacity for it
}

func (e *apiError) Error() string { return e.code + ": " + e.message.String() }

func badRequest(message lang.Message, details ...fiscal.Problem) *apiError {
	return &apiError{status: http.StatusBadRequest, code: "bad_request", message: message, details: details}
}

func unauthorized(challenge string, message lang.Message) *apiError {
	return &apiError{status: http.StatusUnauthorized, code: "unauthorized", message: message,
		headers: map[string]string{"WWW-Authenticate": challenge}}
}

func forbidden(message lang.Message) *apiError {
	return &apiError{status: http.StatusForbidden, code: "forbidden", message: message}
}

// suspended refuses a credential that an operator has suspended, or whose taxpayer or
// environment is suspended.
func suspended(c store.Credential) *apiError {
	switch c.Suspended.Kind() {
	case "taxpayer":
		return forbidden(lang.Messagef("this taxpayer is suspended; ask the operator of the service",
			"este contribuyente está suspendido; consulte al operador del servicio"))
	case "environment":
		return forbidden(lang.Messagef("the environment %s is suspended; try again later, or ask the operator of the service",
			"el ambiente %s está suspendido; intente más tarde o consulte al operador del servicio", c.Environment))
	}
	return forbidden(lang.Messagef("this credential is suspended; ask the operator of the service",
		"esta credencial está suspendida; consulte al operador del servicio"))
}

func insufficientScope(missing []string) *apiError {
	e := forbidden(lang.Messagef(
		"the credential does not have the scope %s", "la credencial no tiene el alcance (scope) %s", strings.Join(missing, ", ")))
	e.headers = map[string]string{
		"WWW-Authenticate": `Bearer error="insufficient_scope", scope="` + strings.Join(missing, " ") + `"`,
	}
	return e
}

func notFound() *apiError {
	return &apiError{status: http.StatusNotFound, code: "not_found", message: lang.Messagef("the resource does not exist", "el recurso no existe")}
}

func methodNotAllowed(allow string) *apiError {
	e := badRequest(lang.Messagef("this path allows only the methods %s", "esta ruta permite solo los métodos %s", allow))
	e.status, e.headers = http.StatusMethodNotAllowed, map[string]string{"Allow": allow}
	return e
}

// preconditionFailed refuses a request whose If-Match does not match (RFC 9110 §13.1.1).
// The closed list of codes has none for it.
func preconditionFailed() *apiError {
	e := badRequest(lang.Messagef("If-Match does not name the current state of this resource; read it again, or send the request without If-Match",
		"If-Match no nombra el estado actual de este recurso; léalo otra vez o envíe la solicitud sin If-Match"))
	e.status = http.StatusPreconditionFailed
	return e
}

func tooLarge(limit int64) *apiError {
	e := badRequest(lang.Messagef("the body is larger than the limit of %d bytes", "el cuerpo supera el límite de %d bytes", limit))
	e.status, e.headers = http.StatusRequestEntityTooLarge, map[string]string{"Connection": "close"}
	return e
}

func tooSlow() *apiError {
	e := badRequest(lang.Messagef("the body did not arrive in time; send the same request again",
		"el cuerpo no llegó a tiempo; envíe la misma solicitud otra vez"))
	e.status, e.headers = http.StatusRequestTimeout, map[string]string{"Connection": "close"}
	return e
}

func unsupportedMedia(message lang.Message) *apiError {
	e := badRequest(message)
	e.status = http.StatusUnsupportedMediaType
	return e
}

func rateLimited(seconds int64, message lang.Message) *apiError {
	return &apiError{status: http.StatusTooManyRequests, code: "rate_limited", message: message,
		headers: map[string]string{"Retry-After": strconv.FormatInt(max(1, seconds), 10)}}
}

func unavailable(message lang.Message) *apiError {
	return &apiError{status: http.StatusServiceUnavailable, code: "service_unavailable", message: message,
		headers: map[string]string{"Retry-After": "1"}}
}

// stopping refuses a request because the service drains.
func stopping() *apiError {
	return unavailable(lang.Messagef("the service is stopping; send the same request again",
		"el servicio se está deteniendo; envíe la misma solicitud otra vez"))
}

// invalid returns the problems of a body other than an invoice.
func invalid(details ...fiscal.Problem) *apiError {
	return &apiError{status: http.StatusUnprocessableEntity, code: "validation_error",
		details: details,
		message: lang.Messagef("the request is not valid; see details", "la solicitud no es válida; vea los detalles (details)")}
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
		message: lang.Messagef("this file of the document does not exist in the current environment or status",
			"este archivo del comprobante no existe en el ambiente o el estado actual")}
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
		invalidMessage *inbox.InvalidMessageError
	)
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &syntax):
		return &apiError{status: http.StatusBadRequest, code: "invalid_json", message: syntax.Message()}
	case errors.As(err, &notReady):
		return &apiError{status: http.StatusConflict, code: "operational_readiness_failed",
			details: notReady.Problems,
			message: lang.Messagef(
				"the taxpayer cannot issue invoices yet; the operator must correct what details lists, then send the same request again",
				"el contribuyente todavía no puede emitir facturas; el operador debe corregir lo que indican los detalles (details); luego envíe la misma solicitud otra vez")}
	case errors.As(err, &problems):
		return &apiError{status: http.StatusUnprocessableEntity, code: "validation_error",
			details: problems,
			message: lang.Messagef("the invoice is not valid and was not stored; correct what details lists, then send it with the same external_id",
				"la factura no es válida y no se guardó; corrija lo que indican los detalles (details) y envíela con el mismo external_id")}
	case errors.Is(err, notify.ErrMismatch):
		return &apiError{status: http.StatusConflict, code: "idempotency_mismatch",
			message: lang.Messagef("this Idempotency-Key was used with a different request; use a new Idempotency-Key for a new request",
				"este Idempotency-Key ya se usó con otra solicitud; use un Idempotency-Key nuevo para una solicitud nueva")}
	case errors.Is(err, pipeline.ErrMismatch):
		return &apiError{status: http.StatusConflict, code: "idempotency_mismatch",
			message: lang.Messagef("this Idempotency-Key was used with a different request; to repeat a request send exactly the same body, "+
				"and for a new or corrected invoice use a new Idempotency-Key and a new external_id",
				"este Idempotency-Key ya se usó con otra solicitud; para repetir una solicitud envíe exactamente el mismo cuerpo, "+
					"y para una factura nueva o corregida use un Idempotency-Key nuevo y un external_id nuevo")}
	case errors.Is(err, store.ErrTooManyEndpoints):
		return invalid(fiscal.Problem{Code: fiscal.CodeTooManyItems, Message: lang.Messagef(
			"the taxpayer already has the largest number of webhook endpoints; delete one first",
			"el contribuyente ya tiene el máximo de puntos de recepción (webhooks); elimine uno primero")})
	case errors.As(err, &invalidMessage):
		return invalid(invalidMessage.Problem)
	case errors.As(err, &conflict):
		return &apiError{status: http.StatusConflict, code: "external_id_conflict",
			invoice: conflict.InvoiceID,
			message: lang.Messagef(
				"an invoice with this external_id already exists; to repeat a request use its Idempotency-Key, and for another invoice, "+
					"or to correct a rejected one, use a new external_id and a new Idempotency-Key",
				"ya existe una factura con este external_id; para repetir una solicitud use su mismo Idempotency-Key, y para otra factura, "+
					"o para corregir una rechazada, use un external_id nuevo y un Idempotency-Key nuevo"),
			details: fiscal.Problems{{Field: "external_id", Code: fiscal.CodeAlreadyExists, Message: lang.Messagef(
				"another invoice of this taxpayer has this external_id; an external_id is used once, also when its invoice is rejected",
				"otra factura de este contribuyente tiene este external_id; un external_id se usa una sola vez, aunque su factura sea rechazada")}}}
	case errors.Is(err, store.ErrNotFound):
		return notFound()
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return unavailable(lang.Messagef("the service cannot complete the request now; send the same request again after Retry-After seconds",
			"el servicio no puede completar la solicitud ahora; envíe la misma solicitud otra vez después de los segundos de Retry-After"))
	}
	return &apiError{status: http.StatusInternalServerError, code: "internal_error",
		message: lang.Messagef("internal error; give the request_id to support", "error interno; indique el request_id a soporte")}
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
	x.w.Header().Set("Cache-Control", "no-store")
	clientGone := x.r.Context().Err() != nil // its cancelled context explains the error
	if e.status >= http.StatusInternalServerError && !clientGone && !errors.As(err, new(*apiError)) {
		a.o.Log.Error("A request failed because of an error of the service. The client got the status below and may repeat the request.", "request_id", x.id, "route", x.route, "status", e.status, "error", err.Error())
	}
	if !x.authenticated {
		a.countAnonymous(x)
	}
	for name, value := range e.headers {
		x.w.Header().Set(name, value)
	}
	x.linkTo("<" + a.basePath + "/docs#error-" + e.code + `>; rel="help"`)
	if e.invoice != "" && x.hasScope(apikey.InvoicesRead) {
		x.w.Header().Set("Location", a.basePath+pipeline.InvoicePath(store.Invoice{Scope: x.scope, ID: e.invoice}))
	}
	details := make([]detail, len(e.details))
	for i, p := range e.details {
		details[i] = detail{p.Field, p.Code, p.Message.In(x.language)}
	}
	x.code, x.problems = e.code, e.details
	x.dependsOnLanguage()
	body, err := strictjson.Encode(errorEnvelope{errorBody{e.code, e.message.In(x.language), x.id, details}})
	if err != nil {
		a.o.Log.Error("Cannot encode the answer of an error. Its body is empty.", "request_id", x.id, "error", err.Error())
	}
	x.send(e.status, body)
	x.shed = e.shed
}
