// Package otlptest is a trace collector for tests: it decodes the spans that a service
// exports, in both forms of OTLP over HTTP.
package otlptest

import (
	"compress/gzip"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"
)

// Span is a span that has arrived. Ids are hexadecimal; Parent is empty for the first
// span of a trace. Numbers among the attributes are texts.
type Span struct {
	TraceID, SpanID, Parent string
	Name                    string
	Kind                    int
	Start, End              time.Time
	Attributes              map[string]string
	Failed                  bool
	Resource                map[string]string // attributes of the service
}

// Collector receives spans at URL.
type Collector struct {
	URL string

	mu      sync.Mutex
	spans   []Span
	bodies  [][]byte // decompressed
	headers []http.Header
	answers []func(http.ResponseWriter) // for the next requests, before those that are taken in
}

// New starts a collector. It ends with the test.
func New(t *testing.T) *Collector {
	t.Helper()
	c := &Collector{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := c.receive(w, r); err != nil {
			t.Errorf("the collector cannot read a request: %v", err)
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	t.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

// AnswerNext makes the collector refuse the next request.
func (c *Collector) AnswerNext(refuse func(http.ResponseWriter)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers = append(c.answers, refuse)
}

// Spans returns the spans that have arrived, in the order of their start.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.Clone(c.spans)
	slices.SortStableFunc(all, func(a, b Span) int { return a.Start.Compare(b.Start) })
	return all
}

// Requests returns the headers and the decompressed bodies of the requests.
func (c *Collector) Requests() ([]http.Header, [][]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.headers), slices.Clone(c.bodies)
}

func (c *Collector) receive(w http.ResponseWriter, r *http.Request) error {
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(body)
		if err != nil {
			return err
		}
		body = unpacked
	}
	text, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.headers, c.bodies = append(c.headers, r.Header.Clone()), append(c.bodies, text)
	if len(c.answers) > 0 {
		refuse := c.answers[0]
		c.answers = c.answers[1:]
		refuse(w)
		return nil
	}
	if r.Method != http.MethodPost || r.URL.Path != "/v1/traces" {
		return fmt.Errorf("%s %s", r.Method, r.URL.Path)
	}
	var spans []Span
	switch kind := r.Header.Get("Content-Type"); kind {
	case "application/x-protobuf":
		spans, err = decodeProtobuf(text)
	case "application/json":
		spans, err = decodeJSON(text)
	default:
		err = fmt.Errorf("content type %q", kind)
	}
	c.spans = append(c.spans, spans...)
	return err
}

// field is one field of a message of protocol buffers.
type field struct {
	number int
	value  uint64
	bytes  []byte
}

var errMessage = errors.New("a message of protocol buffers is cut off or has an unknown type")

func fields(message []byte) (all []field, err error) {
	for len(message) > 0 {
		tag, n := binary.Uvarint(message)
		if n <= 0 || tag>>3 > math.MaxInt32 {
			return nil, errMessage
		}
		message = message[n:]
		f := field{number: int(tag >> 3)}
		switch tag & 7 {
		case 0:
			if f.value, n = binary.Uvarint(message); n <= 0 {
				return nil, errMessage
			}
			message = message[n:]
		case 1:
			if len(message) < 8 {
				return nil, errMessage
			}
			f.value, message = binary.LittleEndian.Uint64(message), message[8:]
		case 2:
			size, n := binary.Uvarint(message)
			if n <= 0 || uint64(len(message)-n) < size {
				return nil, errMessage
			}
			f.bytes, message = message[n:n+int(size)], message[n+int(size):]
		default:
			return nil, errMessage
		}
		all = append(all, f)
	}
	return all, nil
}

// each calls fn for every field of a message.
func each(message []byte, fn func(field) error) error {
	all, err := fields(message)
	for _, f := range all {
		if err == nil {
			err = fn(f)
		}
	}
	return err
}

func decodeProtobuf(request []byte) (spans []Span, err error) {
	err = each(request, func(of field) error {
		resource := map[string]string{}
		return each(of.bytes, func(f field) error {
			switch f.number {
			case 1:
				return each(f.bytes, func(a field) error { return addAttribute(resource, a.bytes) })
			case 2:
				return each(f.bytes, func(s field) error {
					if s.number != 2 {
						return nil
					}
					span, err := decodeSpan(s.bytes)
					span.Resource = resource
					spans = append(spans, span)
					return err
				})
			}
			return nil
		})
	})
	return spans, err
}

func decodeSpan(message []byte) (Span, error) {
	s := Span{Attributes: map[string]string{}}
	err := each(message, func(f field) error {
		switch f.number {
		case 1:
			s.TraceID = hex.EncodeToString(f.bytes)
		case 2:
			s.SpanID = hex.EncodeToString(f.bytes)
		case 4:
			s.Parent = hex.EncodeToString(f.bytes)
		case 5:
			s.Name = string(f.bytes)
		case 6:
			s.Kind = int(f.value)
		case 7:
			s.Start = time.Unix(0, int64(f.value)).UTC()
		case 8:
			s.End = time.Unix(0, int64(f.value)).UTC()
		case 9:
			return addAttribute(s.Attributes, f.bytes)
		case 15:
			return each(f.bytes, func(status field) error {
				s.Failed = s.Failed || status.number == 3 && status.value == 2
				return nil
			})
		}
		return nil
	})
	return s, err
}

func addAttribute(to map[string]string, message []byte) error {
	var key, value string
	err := each(message, func(f field) error {
		if f.number == 1 {
			key = string(f.bytes)
			return nil
		}
		return each(f.bytes, func(v field) error {
			if value = string(v.bytes); v.number == 3 {
				value = fmt.Sprint(int64(v.value))
			}
			return nil
		})
	})
	to[key] = value
	return err
}

type jsonAttribute struct {
	Key   string `json:"key"`
	Value struct {
		Text   string `json:"stringValue"`
		Number string `json:"intValue"`
	} `json:"value"`
}

func attributesOf(list []jsonAttribute) map[string]string {
	all := map[string]string{}
	for _, a := range list {
		all[a.Key] = a.Value.Text + a.Value.Number // one of them is empty
	}
	return all
}

func decodeJSON(request []byte) (spans []Span, err error) {
	var parsed struct {
		ResourceSpans []struct {
			Resource struct {
				Attributes []jsonAttribute `json:"attributes"`
			} `json:"resource"`
			ScopeSpans []struct {
				Spans []struct {
					TraceID    string          `json:"traceId"`
					SpanID     string          `json:"spanId"`
					Parent     string          `json:"parentSpanId"`
					Name       string          `json:"name"`
					Kind       int             `json:"kind"`
					Start      int64           `json:"startTimeUnixNano,string"`
					End        int64           `json:"endTimeUnixNano,string"`
					Attributes []jsonAttribute `json:"attributes"`
					Status     struct {
						Code int `json:"code"`
					} `json:"status"`
				} `json:"spans"`
			} `json:"scopeSpans"`
		} `json:"resourceSpans"`
	}
	if err := json.Unmarshal(request, &parsed); err != nil {
		return nil, err
	}
	for _, of := range parsed.ResourceSpans {
		for _, scope := range of.ScopeSpans {
			for _, s := range scope.Spans {
				spans = append(spans, Span{
					TraceID: s.TraceID, SpanID: s.SpanID, Parent: s.Parent, Name: s.Name, Kind: s.Kind,
					Start: time.Unix(0, s.Start).UTC(), End: time.Unix(0, s.End).UTC(), Attributes: attributesOf(s.Attributes),
					Failed: s.Status.Code == 2, Resource: attributesOf(of.Resource.Attributes),
				})
			}
		}
	}
	return spans, nil
}
