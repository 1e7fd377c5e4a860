// Package trace makes OpenTelemetry traces: it reads and writes the W3C trace context,
// measures spans, and encodes them as OTLP for a Sender. A nil Tracer and a nil Span do
// nothing, so code that is traced needs no condition and costs nothing when tracing is
// off.
//
// Spans carry ids, names of stages and services, and outcomes. They carry nothing of the
// contents of documents and no secrets.
package trace

import "encoding/hex"

// Context identifies a span of a trace, as the header traceparent does. The zero value
// identifies none.
type Context struct {
	TraceID [16]byte
	SpanID  [8]byte
	Sampled bool // the caller exports the spans of this trace
}

// traceparentSize is the size of a traceparent of version 00:
// 00-<32 digits>-<16 digits>-<2 digits>.
const traceparentSize = 55

// Parse reads a traceparent. It reports false when the text is not valid. Of a later
// version it reads the part that it knows.
func Parse(traceparent string) (Context, bool) {
	var c Context
	if len(traceparent) < traceparentSize || traceparent[2] != '-' || traceparent[35] != '-' || traceparent[52] != '-' {
		return Context{}, false
	}
	version, flags := [1]byte{}, [1]byte{}
	if !lowerHex(version[:], traceparent[:2]) || version[0] == 0xff ||
		version[0] == 0 && len(traceparent) != traceparentSize ||
		len(traceparent) > traceparentSize && traceparent[traceparentSize] != '-' {
		return Context{}, false
	}
	if !lowerHex(c.TraceID[:], traceparent[3:35]) || !lowerHex(c.SpanID[:], traceparent[36:52]) || !lowerHex(flags[:], traceparent[53:55]) {
		return Context{}, false
	}
	c.Sampled = flags[0]&1 == 1
	if !c.Valid() {
		return Context{}, false
	}
	return c, true
}

// lowerHex decodes digits into to. It reports false for capital letters, which the
// standard does not allow.
func lowerHex(to []byte, digits string) bool {
	for i := range len(digits) {
		if c := digits[i]; c >= 'A' && c <= 'F' {
			return false
		}
	}
	_, err := hex.Decode(to, []byte(digits))
	return err == nil
}

// Valid reports whether c identifies a span.
func (c Context) Valid() bool { return c.TraceID != [16]byte{} && c.SpanID != [8]byte{} }

// String returns the traceparent, and an empty text when c is not valid.
func (c Context) String() string {
	if !c.Valid() {
		return ""
	}
	flags := "-00"
	if c.Sampled {
		flags = "-01"
	}
	return "00-" + hex.EncodeToString(c.TraceID[:]) + "-" + hex.EncodeToString(c.SpanID[:]) + flags
}

// ID returns the id of the trace, and an empty text when c is not valid.
func (c Context) ID() string {
	if !c.Valid() {
		return ""
	}
	return hex.EncodeToString(c.TraceID[:])
}
