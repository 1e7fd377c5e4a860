package notify

import (
	"context"

	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/trace"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

// startSpan begins the span of an attempt, under the request that created the document of
// the event. It returns nil when traces are off, and for an event without a document: no
// request has caused it.
func (s *Sender) startSpan(ctx context.Context, d store.Delivery) *trace.Span {
	if s.o.Tracer == nil || d.DocumentID == "" {
		return nil
	}
	stored, err := s.o.Store.TraceOf(ctx, d.Scope, d.DocumentID)
	if err != nil {
		return nil // the attempt matters, its span does not
	}
	parent, ok := trace.Parse(stored)
	if !ok {
		return nil
	}
	return s.o.Tracer.Start(parent, trace.Client)
}

// endSpan ends the span of an attempt. It does not name the address: that may have a
// secret.
func endSpan(span *trace.Span, d store.Delivery, r webhook.Result) {
	if !span.Recording() {
		return
	}
	outcome := r.Error
	if outcome == "" {
		outcome = "delivered"
	} else {
		span.Fail()
	}
	span.Describe("webhook "+d.Kind,
		trace.String("fiscalhub.environment", string(d.Environment)), trace.String("fiscalhub.taxpayer_id", d.TaxpayerID),
		trace.String("fiscalhub.document_id", d.DocumentID), trace.String("fiscalhub.event_id", d.EventID),
		trace.String("fiscalhub.endpoint_id", d.EndpointID), trace.Int("fiscalhub.attempt", d.Attempt+1),
		trace.String("fiscalhub.outcome", outcome), trace.Int("http.response.status_code", int64(r.Status)))
	span.End()
}
