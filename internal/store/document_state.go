package store

import (
	"context"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// DocumentState is everything that a worker needs to know about a document.
type DocumentState struct {
	Invoice  Invoice
	Request  []byte  // canonical; nil when the document has a number
	Issued   *Issued // without XML and Summary; nil: the document has no number
	Evidence []Evidence
}

// DocumentStates reads the states of documents of an environment, by document id. It
// reads many at once, because workers claim many at once. The result has no entry for
// a document that the environment does not have.
func (r reader) DocumentStates(ctx context.Context, env fiscal.Environment, documentIDs []string) (map[string]*DocumentState, error) {
	states := make(map[string]*DocumentState, len(documentIDs))
	if len(documentIDs) == 0 {
		return states, nil
	}
	// The condition has only the ids. With the environment the planner could choose
	// an index that reads the whole environment.
	ids, args := placeholders(documentIDs)
	found, err := collect(r.rows(ctx, "read document states", `
		SELECT i.environment, i.taxpayer_id, CASE WHEN s.document_id IS NULL THEN i.request END,
			s.rnc, s.encf, s.range_id, s.certificate, s.number_state, s.security_code, s.buyer_rnc, s.signed_at, s.created_at,
			s.xml_sha256, s.sent_sha256, s.summary IS NOT NULL,
			`+qualified("i", invoiceColumns)+`
		FROM documents i LEFT JOIN issued_documents s ON s.document_id = i.document_id
		WHERE i.document_id IN (`+ids+`)`, args...), (*DocumentState).columns)
	if err != nil {
		return nil, err
	}
	for _, state := range found {
		if state.Invoice.Environment != env {
			continue
		}
		states[state.Invoice.DocumentID] = &state
		if state.Issued != nil {
			state.Issued.Scope, state.Issued.DocumentID = state.Invoice.Scope, state.Invoice.DocumentID
		}
	}
	evidence, err := collect(r.rows(ctx, "read document states", `
		SELECT document_id, id, at, kind, track_id, verdict, body, digest FROM evidence
		WHERE document_id IN (`+ids+`) ORDER BY at, id`, args...), func(e *Evidence) []any {
		return []any{&e.DocumentID, &e.ID, instant(&e.At), &e.Kind, &e.TrackID, &e.Verdict, &e.Body, &e.Digest}
	})
	for _, e := range evidence {
		if state := states[e.DocumentID]; state != nil {
			e.Scope = state.Invoice.Scope
			state.Evidence = append(state.Evidence, e)
		}
	}
	return states, err
}

func (s *DocumentState) columns() []any {
	inv, i := &s.Invoice, new(Issued)
	number := into(func(encf string) { i.ENCF, s.Issued = encf, i })
	return append([]any{
		&inv.Environment, &inv.TaxpayerID, (*storedText)(&s.Request), orZero(&i.RNC), number, orZero(&i.NumberRangeID), orZero(&i.Certificate),
		orZero(&i.State), orZero(&i.SecurityCode), orZero(&i.BuyerRNC), instant(&i.SignedAt), instant(&i.CreatedAt), &i.XMLDigest, &i.SentDigest, &i.Summarized,
	}, inv.columns()...)
}
