package simulator

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"
)

const (
	kindHTML = "text/html; charset=utf-8"
	kindText = "text/plain; charset=utf-8"
	kindJSON = "application/json; charset=utf-8"
	kindXML  = "application/xml; charset=utf-8"

	gatewayPage = "<!DOCTYPE html><html><head><title>Request Rejected</title></head><body>The requested URL was rejected. Please consult with your administrator.</body></html>"
)

// variants returns the variants of a fault. The first one is the default. It returns false
// for an unknown fault.
func variants(fault string) ([]string, bool) {
	switch fault {
	case "F01", "F03", "F04", "F05", "F10", "F11", "F12", "F14", "F16", "F17", "F19", "F20", "F21", "F22":
		return nil, true
	case "F02":
		return []string{"drop", "hang"}, true
	case "F06":
		return []string{"html", "truncated", "empty-object", "no-trackid", "content-type"}, true
	case "F07":
		return []string{"html", "empty"}, true
	case "F08":
		return []string{"json-string", "string", "mensajes", "model-state", "mensaje"}, true
	case "F09":
		return []string{"401", "expires-after", "past-expiry"}, true
	case "F13":
		return []string{"first", "second"}, true
	case "F15":
		return []string{"other-rnc", "other-encf", "contradiction", "unknown-code", "other-code", "other-total", "other-buyer"}, true
	case "F18":
		return []string{"lookups", "result"}, true
	case "F24":
		return []string{"null", "empty", "swap", "dead", "private", "http"}, true
	case "peer":
		return []string{"arecf-1", "arecf-2", "arecf-3", "arecf-4", "unsigned", "other-encf", "other-signer", "500", "timeout-after-store", "requires-token", "html", "indented"}, true
	}
	return nil, false
}

// check returns an error when the action is not valid.
func (a *Action) check() error {
	names, known := variants(a.Fault)
	switch {
	case a.Fault == "F23":
		return fmt.Errorf("simulator: rule: F23 is a fault of the listener: see TLSConfig")
	case !known:
		return fmt.Errorf("simulator: rule: unknown fault %q", a.Fault)
	case a.Variant != "" && !slices.Contains(names, a.Variant):
		return fmt.Errorf("simulator: rule: variant %[2]q of %[1]s must be one of %[3]q", a.Fault, a.Variant, names)
	case a.Fault == "F17" && (a.Verdict == nil || !slices.Contains([]int{codeAccepted, codeRejected, codeConditional}, a.Verdict.Code)):
		return fmt.Errorf("simulator: rule: F17 needs a verdict of code 1, 2 or 4")
	}
	return nil
}

// variant returns the variant of the action, or the default one.
func (a *Action) variant() string {
	if names, _ := variants(a.Fault); a.Variant == "" && len(names) > 0 {
		return names[0]
	}
	return a.Variant
}

// hasFault reports whether a rule applies this fault to the call.
func (c *call) hasFault(fault string) bool { return c.fault != nil && c.fault.Fault == fault }

// losesResponse reports whether a fault keeps the response from the client.
func (c *call) losesResponse() bool {
	return c.hasFault("F02") || c.hasFault("F05") || c.hasFault("F06")
}

// applyEarlyFault applies the faults that act before the service. It reports whether the
// call has ended.
func (c *call) applyEarlyFault() bool {
	if c.config.Maintenance && c.service != Status && c.peer == "" || c.hasFault("F21") && c.service != Status {
		c.respondInstead(response{status: http.StatusServiceUnavailable, contentType: kindHTML, body: []byte(gatewayPage)})
		return true
	}
	if c.fault == nil {
		return false
	}
	switch c.fault.Fault {
	case "F01":
		if c.s.clock.sleep(c.r.Context(), time.Duration(c.fault.Delay)) != nil {
			c.entry.Class = "given up"
			return true
		}
	case "F03":
		c.countPost("")
		c.dropConnection()
		return true
	case "F04":
		_, _ = io.CopyN(io.Discard, c.body, c.r.ContentLength/2) // a short body is no error
		c.countPost("")
		c.dropConnection()
		return true
	case "F02", "F05", "F06":
		c.store = c.fault.store(c.fault.Fault != "F05")
	case "F07":
		a := response{status: cmp.Or(c.fault.Status, http.StatusBadRequest), contentType: kindHTML, body: []byte(gatewayPage)}
		if c.fault.variant() == "empty" {
			a.contentType, a.body = "", nil
		}
		c.respondInstead(a)
		return true
	case "F08":
		c.respondInstead(errorBody(c.fault.variant(), cmp.Or(c.fault.Status, http.StatusBadRequest)))
		return true
	case "F09":
		if c.fault.variant() == "401" {
			c.allowNewToken()
			c.respondInstead(response{status: http.StatusUnauthorized})
			return true
		}
	case "F10":
		wait := max(time.Duration(c.fault.Delay), time.Second)
		c.w.Header().Set("Retry-After", strconv.Itoa(int(wait/time.Second)))
		c.respondInstead(response{status: http.StatusTooManyRequests})
		return true
	case "F18":
		if (c.fault.variant() == "result") == (c.service == Result) {
			c.respondInstead(response{status: http.StatusServiceUnavailable, contentType: kindHTML, body: []byte(gatewayPage)})
			return true
		}
	case "F20":
		c.now = c.now.Add(time.Duration(c.fault.Delay))
	}
	return false
}

// respondInstead reads the upload and answers in place of the service.
func (c *call) respondInstead(a response) {
	c.store = false
	c.countUnstoredUpload()
	c.entry.Class = "refused by a rule"
	c.write(a)
}

// errorBody returns a refusal in one of the forms that DGII uses.
func errorBody(variant string, status int) response {
	const text = "El archivo enviado no es válido."
	switch variant {
	case "string":
		return response{status: status, contentType: kindText, body: []byte(text)}
	case "mensajes":
		return jsonResponse(status, map[string]any{"mensajes": []string{text}})
	case "mensaje":
		return jsonResponse(status, map[string]any{"mensaje": text})
	case "model-state":
		return jsonResponse(status, map[string]any{
			"type": "https://tools.ietf.org/html/rfc7231#section-6.5.1", "title": "One or more validation errors occurred.",
			"status": status, "errors": map[string][]string{"xml": {"The xml field is required."}},
		})
	}
	return jsonResponse(status, text)
}

// writeWithFault sends a response, changed by the fault of the call.
func (c *call) writeWithFault(a response) {
	if c.entry.Class == "" {
		c.entry.Class = "answered"
	}
	if c.fault == nil {
		c.write(a)
		return
	}
	switch c.fault.Fault {
	case "F02":
		c.entry.Status = 0
		if c.fault.variant() == "hang" {
			c.entry.Class = "left hanging"
			c.s.clock.waitForClient(c.r.Context())
			return
		}
		c.dropConnection()
	case "F05":
		c.write(response{status: cmp.Or(c.fault.Status, http.StatusServiceUnavailable), contentType: kindHTML, body: []byte(gatewayPage)})
	case "F06":
		c.write(corrupted(a, c.fault.variant()))
	case "F22":
		c.writeSlowly(a)
	default:
		c.write(a)
	}
}

// corrupted returns the response in a form that a client cannot read.
func corrupted(a response, variant string) response {
	a.status = http.StatusOK
	switch variant {
	case "truncated":
		a.body = a.body[:len(a.body)/2]
	case "empty-object":
		a.contentType, a.body = kindJSON, []byte("{}")
	case "no-trackid":
		a.contentType, a.body = kindJSON, []byte(`{"trackId":"","error":null,"mensaje":null}`)
	case "content-type":
		a.contentType = kindHTML
	default:
		a.contentType, a.body = kindHTML, []byte(gatewayPage)
	}
	return a
}

// writeSlowly sends a response byte by byte.
func (c *call) writeSlowly(a response) {
	pause := cmp.Or(time.Duration(c.fault.Delay), 100*time.Millisecond)
	c.entry.Status = a.status
	c.w.Header().Set("Content-Type", a.contentType)
	c.w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	c.w.WriteHeader(a.status)
	flush := http.NewResponseController(c.w)
	for b := range bytes.SplitSeq(a.body, nil) {
		if _, err := c.w.Write(b); err != nil || flush.Flush() != nil {
			return
		}
		c.entry.BytesOut++
		if c.s.clock.sleep(c.r.Context(), pause) != nil {
			return
		}
	}
}

// dropConnection closes the connection without a response.
func (c *call) dropConnection() {
	c.entry.Class = "dropped"
	hijacker, ok := c.w.(http.Hijacker)
	if !ok {
		panic(http.ErrAbortHandler) // net/http's way to abort, where the connection cannot be taken over
	}
	conn, _, err := hijacker.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // a TCP reset; a normal close would do too
	}
	_ = conn.Close() // an error does not matter: the connection is to be broken
}
