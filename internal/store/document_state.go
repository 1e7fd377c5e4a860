package store

import (
	"context"
	"database/sql"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// DocumentState is what is stored of a document that a job is about.
type DocumentState struct {
	Invoice  Invoice
	Request  []byte  // canonical; only while no number was taken
	Issued   *Issued // without its bytes; nil: no number was taken
	Evidence []Evidence
}

// DocumentStates reads what is stored of the documents of an environment, by their ids:
// of many at once, because workers claim many at once. A document that is not
// there is missing in what comes back.
func (r reader) DocumentStates(ctx context.Context, env fiscal.Environment, documentIDs []string) (map[string]*DocumentState, error) {
	files := make(map[string]*DocumentState, len(documentIDs))
	if len(documentIDs) == 0 {
		return files, nil
	}
	// By the ids alone: beside them the environment would tempt a planner.
	places, args := placeholders(documentIDs)
	rows, err := r.q.QueryContext(ctx, `
		SELECT i.environment, i.taxpayer_id, CASE WHEN s.document_id IS NULL THEN i.request END,
			s.rnc, s.encf, s.sequence_id, s.certificate, s.number_state, s.security_code, s.buyer_rnc, s.signed_at, s.created_at,
			s.xml_sha256, s.sent_sha256, s.summary IS NOT NULL,
			`+prefixed("i.", invoiceColumns)+`
		FROM invoices i LEFT JOIN issued s ON s.document_id = i.document_id
		WHERE i.document_id IN (`+places+`) AND i.environment <> '' AND i.taxpayer_id <> ''`, args...)
	if err != nil {
		return nil, r.d.wrap("read files", err)
	}
	found, err := collect(r.d, "read files", rows, scanDocumentState)
	if err != nil {
		return nil, err
	}
	for _, f := range found {
		if f.Invoice.Environment == env {
			files[f.Invoice.DocumentID] = f
		}
	}
	rows, err = r.q.QueryContext(ctx, `
		SELECT document_id, id, at, kind, track_id, verdict, body, digest FROM evidence
		WHERE document_id IN (`+places+`) AND environment <> '' AND taxpayer_id <> '' ORDER BY at, id`, args...)
	if err != nil {
		return nil, r.d.wrap("read files", err)
	}
	evidence, err := collect(r.d, "read files", rows, func(row row) (e Evidence, err error) {
		var at, verdict int64
		err = row.Scan(&e.DocumentID, &e.ID, &at, &e.Kind, &e.TrackID, &verdict, &e.Body, &e.Digest)
		e.At, e.Verdict = fromMicros(at), fiscal.Verdict(verdict)
		return e, err
	})
	for _, e := range evidence {
		if f := files[e.DocumentID]; f != nil {
			e.Scope = f.Invoice.Scope
			f.Evidence = append(f.Evidence, e)
		}
	}
	return files, err
}

func scanDocumentState(r row) (*DocumentState, error) {
	var f DocumentState
	var scope Scope
	var rnc, encf, sequence, certificate, state, code, buyer sql.NullString
	var signed, created sql.NullInt64
	var whole, sent []byte
	var summary bool
	inv, err := scanInvoice(Scope{})(behind{r, []any{
		&scope.Environment, &scope.TaxpayerID, &f.Request, &rnc, &encf, &sequence, &certificate, &state, &code, &buyer, &signed, &created, &whole, &sent, &summary,
	}})
	if err != nil {
		return nil, err
	}
	inv.Scope = scope
	f.Invoice = inv
	if encf.Valid {
		f.Issued = &Issued{
			Scope: inv.Scope, RNC: rnc.String, ENCF: encf.String, DocumentID: inv.DocumentID, NumberRangeID: sequence.String,
			Certificate: certificate.String, State: NumberState(state.String), SecurityCode: code.String, BuyerRNC: buyer.String,
			SignedAt: fromMicros(signed.Int64), CreatedAt: fromMicros(created.Int64), XMLDigest: whole, SentDigest: sent, Summarized: summary,
		}
	}
	return &f, nil
}
