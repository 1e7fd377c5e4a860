package trace

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"time"
)

// Kind says which side of an exchange a span measures.
type Kind int

// The kinds of spans, with their numbers in OTLP.
const (
	Internal Kind = 1
	Server   Kind = 2
	Client   Kind = 3
)

// Attribute is a property of a span: an id, a name, an outcome or a count.
type Attribute struct {
	Key    string
	Text   string
	Number int64
	IsText bool
}

// String returns an attribute with a text.
func String(key, value string) Attribute { return Attribute{Key: key, Text: value, IsText: true} }

// Int returns an attribute with a number.
func Int(key string, value int64) Attribute { return Attribute{Key: key, Number: value} }

// Span is one measured piece of work. A nil Span does nothing.
type Span struct {
	tracer *Tracer
	record record
}

// record is a span that has ended, as it is exported.
type record struct {
	Context
	Parent     [8]byte // zero: the span is the first of its trace
	Kind       Kind
	Name       string
	Start, End time.Time
	Attributes []Attribute
	Failed     bool
}

// Start begins a span under a parent, or a new trace when the parent is not valid. It
// returns nil when the tracer is nil.
func (t *Tracer) Start(parent Context, kind Kind) *Span {
	if t == nil {
		return nil
	}
	s := &Span{tracer: t, record: record{Kind: kind, Start: t.now()}}
	r := &s.record
	if parent.Valid() {
		r.TraceID, r.Parent = parent.TraceID, parent.SpanID
	} else {
		rand.Read(r.TraceID[:]) // never fails
	}
	rand.Read(r.SpanID[:])
	r.Sampled = t.sample(parent, r.TraceID)
	return s
}

// Context returns what identifies the span.
func (s *Span) Context() Context {
	if s == nil {
		return Context{}
	}
	return s.record.Context
}

// Recording reports whether the span is exported. Compute attributes only when it is.
func (s *Span) Recording() bool { return s != nil && s.record.Sampled }

// Describe names the span and adds attributes.
func (s *Span) Describe(name string, attributes ...Attribute) {
	if !s.Recording() {
		return
	}
	s.record.Name = name
	s.record.Attributes = append(s.record.Attributes, attributes...)
}

// Fail marks the span as failed.
func (s *Span) Fail() {
	if s.Recording() {
		s.record.Failed = true
	}
}

// End ends the span and queues it for the export. Call it once.
func (s *Span) End() {
	if !s.Recording() {
		return
	}
	s.record.End = s.tracer.now()
	s.tracer.add(s.record)
}

type contextKey struct{}

// With returns a context under which Child begins spans of s. It returns ctx when s is
// not exported.
func With(ctx context.Context, s *Span) context.Context {
	if !s.Recording() {
		return ctx
	}
	return context.WithValue(ctx, contextKey{}, s)
}

// Child begins a span under the one of the context. It returns nil when there is none.
func Child(ctx context.Context, kind Kind) *Span {
	parent, ok := ctx.Value(contextKey{}).(*Span)
	if !ok {
		return nil
	}
	return parent.tracer.Start(parent.record.Context, kind)
}

// Tracer makes spans and exports them. Make it with New.
type Tracer struct {
	config Config
	now    func() time.Time
	sender Sender
	log    *slog.Logger

	mu      sync.Mutex
	queue   []record
	dropped int64         // since the last message about it
	full    chan struct{} // a batch is complete
	ended   chan struct{} // Close was called
	stopped chan struct{} // Run has returned
}

// add queues a span, or drops it when the queue is full: a slow collector must not take
// the memory of the service.
func (t *Tracer) add(r record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.queue) >= t.config.queueSize {
		t.dropped++
		return
	}
	t.queue = append(t.queue, r)
	if len(t.queue) >= t.config.batchSize {
		select {
		case t.full <- struct{}{}:
		default:
		}
	}
}

// take removes up to a batch of spans from the queue.
func (t *Tracer) take() []record {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := min(len(t.queue), t.config.batchSize)
	batch := t.queue[:n:n]
	t.queue = t.queue[n:]
	return batch
}

// takeDropped returns how many spans were dropped since the last call.
func (t *Tracer) takeDropped() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.dropped
	t.dropped = 0
	return n
}
