// Package dossier reads everything that the service knows of one document, in order. The
// commands history and work show, and the page of a document in the console, show it.
package dossier

import (
	"context"
	"errors"

	"github.com/fiscalhub/fiscalhub/internal/evidence"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// Dossier is everything that is known of a document.
type Dossier struct {
	Invoice     store.Invoice
	Issued      *store.Issued // without XML and Summary; nil: the document has no number. See Shown
	Evidence    []evidence.Item
	History     []store.HistoryEntry
	Attempts    []store.Attempt
	Responses   []store.UnconfirmedResponse
	Differences []store.Difference
	Replaced    []store.ReplacedNumber // numbers that the document had before
	Job         *store.Job             // nil: no worker continues with the document
	Deliveries  []Delivery
}

// Delivery is the delivery of an event of the document to an endpoint.
type Delivery struct {
	store.Delivery
	URL  string
	Last *store.DeliveryAttempt // nil: none yet, or not kept any more
}

// Tries returns how many attempts were made.
func (d Delivery) Tries() int { return int(d.Attempt) }

// Read returns everything that is known of a document. The error is store.ErrNotFound when
// the taxpayer has no such document in the environment.
func Read(ctx context.Context, s *store.Store, scope store.Scope, documentID string) (d Dossier, err error) {
	states, err := s.DocumentStates(ctx, scope.Environment, []string{documentID})
	if err != nil {
		return d, err
	}
	state := states[documentID]
	if state == nil || state.Invoice.Scope != scope {
		return d, store.ErrNotFound
	}
	d.Invoice, d.Issued = state.Invoice, state.Issued
	if d.Evidence, err = pipeline.DecodeEvidence(state.Evidence); err != nil {
		return d, err
	}
	var failed [5]error
	d.History, failed[0] = s.History(ctx, scope, d.Invoice.ID)
	d.Attempts, failed[1] = s.Attempts(ctx, scope, documentID)
	d.Responses, failed[2] = s.UnconfirmedResponses(ctx, scope, documentID)
	d.Differences, failed[3] = s.DifferencesOf(ctx, scope, documentID)
	d.Replaced, failed[4] = s.ReplacedNumbers(ctx, scope, documentID)
	if err := errors.Join(failed[:]...); err != nil {
		return d, err
	}
	job, err := s.JobOf(ctx, scope, documentID)
	switch {
	case err == nil:
		d.Job = &job
	case !errors.Is(err, store.ErrNotFound):
		return d, err
	}
	d.Deliveries, err = deliveries(ctx, s, scope, documentID)
	return d, err
}

// Shown returns the number of the document when people may see it: before that, a failover
// could take it back. It returns nil otherwise.
func (d Dossier) Shown() *store.Issued {
	if d.Invoice.ENCF == "" {
		return nil
	}
	return d.Issued
}

// deliveries reads the deliveries of the events of a document, with their last attempts.
func deliveries(ctx context.Context, s *store.Store, scope store.Scope, documentID string) (all []Delivery, err error) {
	found, err := s.DeliveriesOfDocument(ctx, scope, documentID)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	endpoints, err := s.Endpoints(ctx, scope, "", store.MaxEndpoints)
	if err != nil {
		return nil, err
	}
	addresses := map[string]string{}
	for _, e := range endpoints {
		addresses[e.ID] = e.URL
	}
	attempts := map[string]*store.DeliveryAttempt{}
	for i, d := range found {
		if i == 0 || found[i-1].EventID != d.EventID {
			some, err := s.AttemptsOfEvent(ctx, scope, d.EventID)
			if err != nil {
				return nil, err
			}
			for j := range some {
				attempts[some[j].EventID+some[j].EndpointID] = &some[j]
			}
		}
		all = append(all, Delivery{d, addresses[d.EndpointID], attempts[d.EventID+d.EndpointID]})
	}
	return all, nil
}
