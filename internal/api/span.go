package api

import (
	"net/http"

	"github.com/fiscalhub/fiscalhub/internal/trace"
)

// traceOf reads the header traceparent. A request with several or with a malformed one
// has none, as the standard says.
func traceOf(h http.Header) trace.Context {
	lines := h["Traceparent"]
	if len(lines) != 1 {
		return trace.Context{}
	}
	c, _ := trace.Parse(lines[0])
	return c
}

// endSpan ends the span of a request. It has ids and the route, and nothing else of the
// request.
func (x *exchange) endSpan() {
	if !x.span.Recording() {
		return
	}
	method := methodLabel(x.r.Method)
	x.span.Describe(method+" "+x.route,
		trace.String("http.request.method", method), trace.String("http.route", x.route), trace.Int("http.response.status_code", int64(x.status)),
		trace.String("fiscalhub.request_id", x.id))
	for key, value := range map[string]string{
		"fiscalhub.taxpayer_id": x.scope.TaxpayerID, "fiscalhub.invoice_id": x.invoiceID, "error.type": x.code,
	} {
		if value != "" {
			x.span.Describe(method+" "+x.route, trace.String(key, value))
		}
	}
	if x.status >= http.StatusInternalServerError {
		x.span.Fail()
	}
	x.span.End()
}
