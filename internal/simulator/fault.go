package simulator

import (
	"bytes"
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

// variants are those of each fault, the first one the default.
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
		return []string{"other-rnc", "other-encf", "contradiction", "unknown-code"}, true
	case "F18":
		return []string{"lookups", "result"}, true
	case "F24":
		return []string{"null", "empty", "swap", "dead", "private", "http"}, true
	case "peer":
		return []string{"arecf-1", "arecf-2", "arecf-3", "arecf-4", "unsigned", "other-encf", "other-signer", "500", "timeout-after-store", "requires-token", "html", "indented"}, true
	}
	return nil, false
}

// check refuses what is no fault, and puts the default variant where none is
// named.
func (a *Action) check() error {
	names, known := variants(a.Fault)
	switch {
	case a.Fault == "F23":
		return fmt.Errorf("simulator: rule: F23 is a matter of the listener: see TLSConfig")
	case !known:
		return fmt.Errorf("simulator: rule: no fault %q", a.Fault)
	case a.Variant != "" && !slices.Contains(names, a.Variant):
		return fmt.Errorf("simulator: rule: %s has no variant %q: want one of %q", a.Fault, a.Variant, names)
	case a.Fault == "F17" && (a.Verdict == nil || !slices.Contains([]int{codeAccepted, codeRejected, codeConditional}, a.Verdict.Code)):
		return fmt.Errorf("simulator: rule: F17 needs a verdict of code 1, 2 or 4")
	}
	return nil
}

// variant is the one of a rule, or the default.
func (a *Action) variant() string {
	if names, _ := variants(a.Fault); a.Variant == "" && len(names) > 0 {
		return names[0]
	}
	return a.Variant
}

// has tells whether the call has a fault.
func (c *call) has(fault string) bool { return c.fault != nil && c.fault.Fault == fault }

// spoils tells whether the call has a fault that keeps the answer from the
// client.
func (c *call) spoils() bool { return c.has("F02") || c.has("F05") || c.has("F06") }

func (a *Action) status(unlessTold int) int {
	if a.Status != 0 {
		return a.Status
	}
	return unlessTold
}

// before carries out the faults that keep a call from its service. It tells
// whether that was all.
func (c *call) before() bool {
	if c.config.Maintenance && c.service != Status && c.peer == "" || c.has("F21") && c.service != Status {
		c.refuse(answer{status: http.StatusServiceUnavailable, kind: kindHTML, body: []byte(gatewayPage)})
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
		c.drop()
		return true
	case "F04":
		_, _ = io.CopyN(io.Discard, c.body, c.r.ContentLength/2) // to whatever end
		c.countPost("")
		c.drop()
		return true
	case "F02", "F05", "F06":
		c.store = c.fault.store(c.fault.Fault != "F05")
	case "F07":
		a := answer{status: c.fault.status(http.StatusBadRequest), kind: kindHTML, body: []byte(gatewayPage)}
		if c.fault.variant() == "empty" {
			a.kind, a.body = "", nil
		}
		c.refuse(a)
		return true
	case "F08":
		c.refuse(errorBody(c.fault.variant(), c.fault.status(http.StatusBadRequest)))
		return true
	case "F09":
		if c.fault.variant() == "401" {
			c.unauthorized()
			c.refuse(answer{status: http.StatusUnauthorized})
			return true
		}
	case "F10":
		wait := max(time.Duration(c.fault.Delay), time.Second)
		c.w.Header().Set("Retry-After", strconv.Itoa(int(wait/time.Second)))
		c.refuse(answer{status: http.StatusTooManyRequests})
		return true
	case "F18":
		if (c.fault.variant() == "result") == (c.service == Result) {
			c.refuse(answer{status: http.StatusServiceUnavailable, kind: kindHTML, body: []byte(gatewayPage)})
			return true
		}
	case "F20":
		c.now = c.now.Add(time.Duration(c.fault.Delay))
	}
	return false
}

// refuse answers in place of the service, after what was sent has arrived.
func (c *call) refuse(a answer) {
	c.store = false
	c.note()
	c.entry.Class = "refused by a rule"
	c.write(a)
}

// errorBody is a refusal in one of the forms that have been seen.
func errorBody(variant string, status int) answer {
	const text = "El archivo enviado no es válido."
	switch variant {
	case "string":
		return answer{status: status, kind: kindText, body: []byte(text)}
	case "mensajes":
		return reply(status, map[string]any{"mensajes": []string{text}})
	case "mensaje":
		return reply(status, map[string]any{"mensaje": text})
	case "model-state":
		return reply(status, map[string]any{
			"type": "https://tools.ietf.org/html/rfc7231#section-6.5.1", "title": "One or more validation errors occurred.",
			"status": status, "errors": map[string][]string{"xml": {"The xml field is required."}},
		})
	}
	return reply(status, text)
}

// after carries out the faults that spoil an answer, and sends it.
func (c *call) after(a answer) {
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
			c.s.clock.hang(c.r.Context())
			return
		}
		c.drop()
	case "F05":
		c.write(answer{status: c.fault.status(http.StatusServiceUnavailable), kind: kindHTML, body: []byte(gatewayPage)})
	case "F06":
		c.write(spoiled(a, c.fault.variant()))
	case "F22":
		c.drip(a)
	default:
		c.write(a)
	}
}

// spoiled is an answer that cannot be understood.
func spoiled(a answer, variant string) answer {
	a.status = http.StatusOK
	switch variant {
	case "truncated":
		a.body = a.body[:len(a.body)/2]
	case "empty-object":
		a.kind, a.body = kindJSON, []byte("{}")
	case "no-trackid":
		a.kind, a.body = kindJSON, []byte(`{"trackId":"","error":null,"mensaje":null}`)
	case "content-type":
		a.kind = kindHTML
	default:
		a.kind, a.body = kindHTML, []byte(gatewayPage)
	}
	return a
}

// drip sends an answer byte by byte.
func (c *call) drip(a answer) {
	pause := time.Duration(c.fault.Delay)
	if pause == 0 {
		pause = 100 * time.Millisecond
	}
	c.entry.Status = a.status
	c.w.Header().Set("Content-Type", a.kind)
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

// drop ends the connection without an answer.
func (c *call) drop() {
	c.entry.Class = "dropped"
	hijacker, ok := c.w.(http.Hijacker)
	if !ok {
		panic(http.ErrAbortHandler) // how net/http wants it where a connection is shared
	}
	conn, _, err := hijacker.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // a reset rather than an end; either will do
	}
	_ = conn.Close() // it is to be broken
}
