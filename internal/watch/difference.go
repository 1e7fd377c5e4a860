package watch

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// questions ask about one document and count.
type questions struct {
	Lookups
	id    *xmlsig.Identity
	asked int
}

type lookup func(context.Context, *xmlsig.Identity, fiscal.Query) (fiscal.AuthorityAnswer, error)

func (q *questions) ask(ctx context.Context, ask lookup, about fiscal.Query) (answer fiscal.AuthorityAnswer, found bool, err error) {
	q.asked++
	answer, err = ask(ctx, q.id, about)
	return answer, err == nil && answer.Verdict != fiscal.VerdictNotFound, err
}

// about returns what the authority shows under the number of a document. The first
// question names number, buyer and security code, so that usually one is enough. When
// it finds nothing, summaries have a look-up of their own; and the last question names
// only the number, so that the answer shows whose document the authority has.
func (q *questions) about(ctx context.Context, issued store.Issued) (fiscal.AuthorityAnswer, error) {
	whole := fiscal.Query{RNC: issued.RNC, ENCF: issued.ENCF, BuyerRNC: issued.BuyerRNC, SecurityCode: issued.SecurityCode}
	answer, found, err := q.ask(ctx, q.State, whole)
	if found || err != nil && !errors.Is(err, fiscal.ErrAbsent) {
		return answer, err
	}
	absent := err != nil // there is no look-up by number; that of summaries may exist
	if absent && !issued.Summarized {
		return answer, err
	}
	if issued.Summarized {
		summary, found, err := q.ask(ctx, q.SummaryState, whole)
		if found || absent || err != nil && !errors.Is(err, fiscal.ErrAbsent) {
			return summary, err
		}
	}
	answer, _, err = q.ask(ctx, q.State, fiscal.Query{RNC: issued.RNC, ENCF: issued.ENCF})
	return answer, err
}

// compare returns the differences between a document and the authority's answer about
// its number. What the answer does not show is not compared. A rejected document differs
// only when it is shown as accepted: the authority need not have it, and another document
// may have its number.
func compare(d store.DocumentState, a fiscal.AuthorityAnswer) []store.Difference {
	var all []store.Difference
	add := func(kind store.DifferenceKind, ours, theirs string) {
		all = append(all, store.Difference{Scope: d.Invoice.Scope, DocumentID: d.Invoice.DocumentID, Kind: kind, Ours: ours, Theirs: theirs})
	}
	ours := string(d.Invoice.Status)
	if !accepted(d.Invoice.Status) {
		if a.Verdict.Accepted() && (a.SecurityCode == "" || a.SecurityCode == d.Issued.SecurityCode) {
			add(store.DifferenceState, ours, a.Verdict.Word())
		}
		return all
	}
	if a.Verdict == fiscal.VerdictNotFound {
		add(store.DifferenceNotFound, ours, "not_found")
		return all
	}
	if !agrees(d, a.Verdict) {
		add(store.DifferenceState, ours, a.Verdict.Word())
	}
	if code := d.Issued.SecurityCode; a.SecurityCode != "" && a.SecurityCode != code {
		add(store.DifferenceSecurityCode, code, a.SecurityCode)
	}
	if total, err := fiscal.ParseDecimal(d.Invoice.DocumentTotal); a.HasTotal && (err != nil || !total.Equal(a.Total)) {
		add(store.DifferenceTotal, d.Invoice.DocumentTotal, a.Total.String())
	}
	if buyer := d.Issued.BuyerRNC; a.BuyerRNC != "" && a.BuyerRNC != buyer {
		add(store.DifferenceBuyer, buyer, a.BuyerRNC)
	}
	return all
}

// agrees reports whether a verdict of the authority is the status of a document. The
// look-up by number shows a conditional acceptance only of summaries; of other documents
// it shows an acceptance.
func agrees(d store.DocumentState, v fiscal.Verdict) bool {
	conditional := d.Invoice.Status == fiscal.AcceptedConditional
	switch v {
	case fiscal.VerdictAccepted:
		return !conditional || !d.Issued.Summarized
	case fiscal.VerdictConditional:
		return conditional || d.Invoice.Status == fiscal.Delivered
	case fiscal.VerdictNotFound, fiscal.VerdictRejected, fiscal.VerdictInProcess:
	}
	return false
}

// record stores the differences of a document. It returns those that are new, and those
// that have ended.
func (c *Comparer) record(ctx context.Context, tx *store.Tx, r result, now time.Time) (found, ended []store.Difference, err error) {
	if r.document == nil || r.outcome == outcomeDeferred {
		return nil, nil, nil
	}
	known, err := tx.DifferencesOf(ctx, r.document.Invoice.Scope, r.document.Invoice.DocumentID)
	if err != nil {
		return nil, nil, err
	}
	checkAt := now.Add(c.o.Pace.Scale(differentEvery))
	for _, before := range known {
		still := slices.ContainsFunc(r.differences, func(d store.Difference) bool { return d.Kind == before.Kind })
		if still || !before.EndedAt.IsZero() {
			continue
		}
		if before.CheckAt = checkAt; r.outcome != outcomeSkipped {
			before.EndedAt = now
			ended = append(ended, before)
		}
		if err := tx.SaveDifference(ctx, before); err != nil {
			return nil, nil, err
		}
	}
	for _, d := range r.differences {
		d.FoundAt, d.SeenAt, d.CheckAt = now, now, checkAt
		i := slices.IndexFunc(known, func(b store.Difference) bool { return b.Kind == d.Kind && b.Theirs == d.Theirs && b.EndedAt.IsZero() })
		if i >= 0 {
			d.FoundAt = known[i].FoundAt
		} else {
			found = append(found, d)
		}
		if err := tx.SaveDifference(ctx, d); err != nil {
			return nil, nil, err
		}
	}
	return found, ended, nil
}

// raise raises the alarm for a new difference. The security codes stay out of the log.
func (c *Comparer) raise(d store.Difference, encf string) {
	words := []any{"document_id", d.DocumentID, "encf", encf, "taxpayer_id", d.TaxpayerID, "difference", d.Kind}
	if d.Kind != store.DifferenceSecurityCode {
		words = append(words, "ours", d.Ours, "theirs", d.Theirs)
	}
	if d.Ours == string(fiscal.Rejected) {
		c.o.Log.Error("The tax authority shows a rejected document as accepted. A worker asks again, and the document becomes accepted when it is ours. See `fiscalhub work show`, and check it with the taxpayer.", words...)
		return
	}
	c.o.Log.Error("The tax authority shows an accepted document differently. Nothing was changed. See `fiscalhub work show`, and ask the authority which document it has under the number.", words...)
}
