package store

import (
	"context"
	"database/sql"

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
	rows, err := r.q.QueryContext(ctx, `
		SELECT i.environment, i.taxpayer_id, CASE WHEN s.document_id IS NULL THEN i.request END,
			s.rnc, s.encf, s.range_id, s.certificate, s.number_state, s.security_code, s.buyer_rnc, s.signed_at, s.created_at,
			s.xml_sha256, s.sent_sha256, s.summary IS NOT NULL,
			`+qualified("i", invoiceColumns)+`
		FROM documents i LEFT JOIN issued_documents s ON s.document_id = i.document_id
		WHERE i.document_id IN (`+ids+`)`, args...)
	if err != nil {
		return nil, r.d.wrap("read document states", err)
	}
	found, err := collect(r.d, "read document states", rows, scanDocumentState)
	if err != nil {
		return nil, err
	}
	for _, state := range found {
		if state.Invoice.Environment == env {
			states[state.Invoice.DocumentID] = state
		}
	}
	rows, err = r.q.QueryContext(ctx, `
		SELECT document_id, id, at, kind, track_id, verdict, body, digest FROM evidence
		WHERE document_id IN (`+ids+`) ORDER BY at, id`, args...)
	if err != nil {
		return nil, r.d.wrap("read document states", err)
	}
	evidence, err := collect(r.d, "read document states", rows, func(row row) (e Evidence, err error) {
		var at, verdict int64
		err = row.Scan(&e.DocumentID, &e.ID, &at, &e.Kind, &e.TrackID, &verdict, &e.Body, &e.Digest)
		e.At, e.Verdict = fromMicros(at), fiscal.Verdict(verdict)
		return e, err
	})
	for _, e := range evidence {
		if state := states[e.DocumentID]; state != nil {
			e.Scope = state.Invoice.Scope
			state.Evidence = append(state.Evidence, e)
		}
	}
	return states, err
}

func scanDocumentState(r row) (*DocumentState, error) {
	var state DocumentState
	var scope Scope
	var rnc, encf, numberRange, certificate, numberState, code, buyer sql.NullString
	var signed, created sql.NullInt64
	var whole, sent []byte
	var summary bool
	inv, err := scanInvoice(Scope{})(afterScan{r, []any{
		&scope.Environment, &scope.TaxpayerID, (*storedText)(&state.Request), &rnc, &encf, &numberRange, &certificate, &numberState, &code, &buyer, &signed, &created, &whole, &sent, &summary,
	}})
	if err != nil {
		return nil, err
	}
	inv.Scope = scope
	state.Invoice = inv
	if encf.Valid {
		state.Issued = &Issued{
			Scope: inv.Scope, RNC: rnc.String, ENCF: encf.String, DocumentID: inv.DocumentID, NumberRangeID: numberRange.String,
			Certificate: certificate.String, State: NumberState(numberState.String), SecurityCode: code.String, BuyerRNC: buyer.String,
			SignedAt: fromMicros(signed.Int64), CreatedAt: fromMicros(created.Int64), XMLDigest: whole, SentDigest: sent, Summarized: summary,
		}
	}
	return &state, nil
}
