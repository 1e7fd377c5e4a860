package trace

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// scopeName names the code that has made the spans.
const scopeName = "github.com/fiscalhub/fiscalhub"

// statusError is the status code of a span that has failed.
const statusError = 2

// message is a message of protocol buffers that is being written. The numbers of the
// fields are those of opentelemetry/proto/trace/v1/trace.proto, which never change.
type message []byte

func (m *message) number(field, v uint64) {
	*m = binary.AppendUvarint(*m, field<<3)
	*m = binary.AppendUvarint(*m, v)
}

func (m *message) fixed(field, v uint64) {
	*m = binary.AppendUvarint(*m, field<<3|1)
	*m = binary.LittleEndian.AppendUint64(*m, v)
}

func (m *message) bytes(field uint64, v []byte) {
	*m = binary.AppendUvarint(*m, field<<3|2)
	*m = binary.AppendUvarint(*m, uint64(len(v)))
	*m = append(*m, v...)
}

func (m *message) text(field uint64, v string) { m.bytes(field, []byte(v)) }

func (m *message) attributes(field uint64, all []Attribute) {
	for _, a := range all {
		var value, pair message
		if a.IsText {
			value.text(1, a.Text)
		} else {
			value.number(3, uint64(a.Number)) //nolint:gosec // the format has negative numbers as two's complement
		}
		pair.text(1, a.Key)
		pair.bytes(2, value)
		m.bytes(field, pair)
	}
}

// encodeProtobuf returns an ExportTraceServiceRequest.
func encodeProtobuf(resource []Attribute, spans []record) []byte {
	var about, scope, scoped, of, request message
	about.attributes(1, resource)
	scope.text(1, scopeName)
	scoped.bytes(1, scope)
	for _, s := range spans {
		var span message
		span.bytes(1, s.TraceID[:])
		span.bytes(2, s.SpanID[:])
		if s.Parent != [8]byte{} {
			span.bytes(4, s.Parent[:])
		}
		span.text(5, s.Name)
		span.number(6, uint64(s.Kind)) //nolint:gosec // one of the constants
		span.fixed(7, uint64(s.Start.UnixNano()))
		span.fixed(8, uint64(s.End.UnixNano()))
		span.attributes(9, s.Attributes)
		if s.Failed {
			var status message
			status.number(3, statusError)
			span.bytes(15, status)
		}
		scoped.bytes(2, span)
	}
	of.bytes(1, about)
	of.bytes(2, scoped)
	request.bytes(1, of)
	return request
}

type object = map[string]any

// encodeJSON returns the same request in the JSON form of OTLP: ids are hexadecimal, and
// numbers of 64 bits are texts.
func encodeJSON(resource []Attribute, spans []record) ([]byte, error) {
	list := make([]object, len(spans))
	for i, s := range spans {
		list[i] = object{
			"traceId": hex.EncodeToString(s.TraceID[:]), "spanId": hex.EncodeToString(s.SpanID[:]), "name": s.Name, "kind": s.Kind,
			"startTimeUnixNano": strconv.FormatInt(s.Start.UnixNano(), 10), "endTimeUnixNano": strconv.FormatInt(s.End.UnixNano(), 10),
			"attributes": jsonAttributes(s.Attributes),
		}
		if s.Parent != [8]byte{} {
			list[i]["parentSpanId"] = hex.EncodeToString(s.Parent[:])
		}
		if s.Failed {
			list[i]["status"] = object{"code": statusError}
		}
	}
	return json.Marshal(object{"resourceSpans": []object{{
		"resource":   object{"attributes": jsonAttributes(resource)},
		"scopeSpans": []object{{"scope": object{"name": scopeName}, "spans": list}},
	}}})
}

func jsonAttributes(all []Attribute) []object {
	list := make([]object, len(all))
	for i, a := range all {
		value := object{"stringValue": a.Text}
		if !a.IsText {
			value = object{"intValue": strconv.FormatInt(a.Number, 10)}
		}
		list[i] = object{"key": a.Key, "value": value}
	}
	return list
}

func sortedAttributes(all map[string]string) []Attribute {
	var list []Attribute
	for _, key := range slices.Sorted(maps.Keys(all)) {
		list = append(list, String(key, all[key]))
	}
	return list
}
