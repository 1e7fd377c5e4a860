package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// Without an export of traces the log has the id of the client's trace, and the invoice
// keeps the trace for its stages. A malformed or repeated header is ignored.
func TestTheTraceOfAClientIsLogged(t *testing.T) {
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	const header = "00-" + trace + "-00f067aa0ba902b7-01"
	eachEngineLogging(t, envOptions{}, func(t *testing.T, e *env, log *logBuffer) {
		for name, tt := range map[string]struct {
			lines          []string
			logged, stored string
		}{
			"well-formed": {[]string{header}, trace, header},
			"none":        {nil, "", ""},
			"malformed":   {[]string{strings.ToUpper(header)}, "", ""},
			"two":         {[]string{header, header}, "", ""},
		} {
			got := e.send(request{method: http.MethodPost, path: "invoices", idem: name, header: http.Header{"Traceparent": tt.lines}, body: invoiceBody(name), undescribed: len(tt.lines) > 1})
			made := e.created(got)
			inv, err := e.store.Invoice(t.Context(), e.scope(), made.ID)
			if err != nil || inv.Trace != tt.stored {
				t.Errorf("%s: the invoice keeps %q, %v; want %q", name, inv.Trace, err, tt.stored)
			}
			eventually(t, "the request is logged", func() bool { return strings.Contains(log.String(), made.ID) })
			var line struct {
				TraceID string `json:"trace_id"`
			}
			for text := range strings.Lines(log.String()) {
				if strings.Contains(text, made.ID) {
					e.must(json.Unmarshal([]byte(text), &line))
				}
			}
			if line.TraceID != tt.logged {
				t.Errorf("%s: logged the trace %q, want %q", name, line.TraceID, tt.logged)
			}
		}
	})
}
