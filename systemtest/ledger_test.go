package systemtest

import (
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

// A ledger is what the service and the authority say about the invoices of the clients.
type ledger struct {
	lost       int // acknowledged invoices that the service does not have
	untrue     int // documents whose status is not what the authority says of their bytes
	twice      int // numbers under which the authority has two contents
	gaps       int // numbers that were taken, and that neither a document nor the list of abandoned numbers explains
	unknown    int // numbers at the authority that the service does not know
	abandoned  int // numbers that a release has abandoned
	found      int // those of them that the authority has
	violations int // of the authority's rules
}

// openStore opens the database of the service. A server that has just begun to serve, or
// that other processes keep busy, may answer late.
func (e *env) openStore(t *testing.T) (s *store.Store) {
	t.Helper()
	var err error
	harness.Eventually(t, settleLimit, "the database can be opened", func() bool {
		s, err = store.Open(t.Context(), e.address, store.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		return !errors.Is(err, store.ErrUnavailable)
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// storedInvoices reads the first invoices from the database.
func (e *env) storedInvoices(t *testing.T, s *store.Store, count int) (all []store.Invoice) {
	t.Helper()
	for n := range count {
		inv, err := s.InvoiceByExternalID(t.Context(), e.scope(), "ext-"+strconv.Itoa(n))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, inv)
	}
	return all
}

// checkDocuments checks that so many invoices are accepted, and that nothing else has a
// number.
func (e *env) checkDocuments(t *testing.T, count int) {
	t.Helper()
	s := e.openStore(t)
	defer func() { _ = s.Close() }()
	e.storedInvoices(t, s, count)
	if l := e.checkLedger(t, count, nil); l.abandoned > 0 {
		t.Errorf("%d numbers were abandoned", l.abandoned)
	}
}

// checkLedger compares the first invoices with the authority, and reports every difference
// as an error of the test, except for lost invoices and for the given kinds of violations.
// Acks are the answers that clients have got.
func (e *env) checkLedger(t *testing.T, count int, acks map[int]harness.Answer, allowed ...simulator.ViolationKind) ledger {
	t.Helper()
	s := e.openStore(t)
	defer func() { _ = s.Close() }()
	var l ledger
	for _, v := range e.sim.Violations() {
		if v.Kind != simulator.TokenAgain && !slices.Contains(allowed, v.Kind) { // each process asks for a token of its own
			l.violations++
			t.Errorf("violation: %v", v)
		}
	}
	atAuthority := map[string]simulator.DocumentView{} // by number; an accepted document before others
	for _, d := range e.sim.Documents(simulator.Filter{}) {
		other, seen := atAuthority[d.ENCF]
		if seen && other.SHA256 != d.SHA256 {
			l.twice++
			t.Errorf("the authority has two contents under %s", d.ENCF)
		}
		if !seen || d.Verdict.Code == 1 {
			atAuthority[d.ENCF] = d
		}
	}
	explained := e.checkInvoices(t, s, &l, count, acks, atAuthority)
	l.checkNumbers(t, s, e.scope(), explained)
	for encf := range atAuthority {
		if !explained[encf] {
			l.unknown++
			t.Errorf("the authority has %s, which the service does not know", encf)
		}
	}
	return l
}

// scope returns the taxpayer and the environment of the env.
func (e *env) scope() store.Scope {
	return store.Scope{Environment: fiscal.Certification, TaxpayerID: e.client.Taxpayer}
}

// checkInvoices compares every invoice with the authority. It returns the numbers of
// the invoices.
func (e *env) checkInvoices(t *testing.T, s *store.Store, l *ledger, count int, acks map[int]harness.Answer, atAuthority map[string]simulator.DocumentView) map[string]bool {
	t.Helper()
	explained := map[string]bool{}
	for n := range count {
		inv, err := s.InvoiceByExternalID(t.Context(), e.scope(), "ext-"+strconv.Itoa(n))
		first, acknowledged := acks[n]
		switch {
		case errors.Is(err, store.ErrNotFound):
			if acknowledged {
				l.lost++
			}
			continue
		case err != nil:
			t.Fatal(err)
		case acknowledged && first.ID() != inv.ID:
			l.lost++ // the same sale was created again
		}
		issued, err := s.IssuedDocument(t.Context(), e.scope(), inv.DocumentID)
		if err != nil {
			l.untrue++
			t.Errorf("invoice %d is %s and has no signed document: %v", n, inv.Status, err)
			continue
		}
		if explained[inv.ENCF] {
			l.twice++
			t.Errorf("two documents have the number %s", inv.ENCF)
		}
		explained[inv.ENCF] = true
		theirs, arrived := atAuthority[inv.ENCF]
		ours := arrived && theirs.SHA256 == hex.EncodeToString(issued.SentDigest)
		if inv.Status != fiscal.Accepted || !ours || theirs.Verdict.Code != 1 {
			l.untrue++
			t.Errorf("invoice %d is %s under %s, and the authority says %q (our bytes: %v)", n, inv.Status, inv.ENCF, theirs.State, ours)
		}
	}
	return explained
}

// checkNumbers checks that every number that was taken has a document or was abandoned,
// and not both. It adds the abandoned numbers to those that are explained.
func (l *ledger) checkNumbers(t *testing.T, s *store.Store, scope store.Scope, explained map[string]bool) {
	t.Helper()
	for _, kind := range []fiscal.Type{fiscal.FiscalCredit, fiscal.Consumer} {
		ranges, err := s.NumberRangesOf(t.Context(), scope, kind)
		if err != nil || len(ranges) != 1 {
			t.Fatalf("%d ranges of type %s, %v", len(ranges), kind, err)
		}
		encf := func(n int64) string { return fmt.Sprintf("E%s%010d", kind, n) }
		abandoned, err := s.AbandonedNumbers(t.Context(), scope, "199000013", encf(ranges[0].First), encf(ranges[0].Last))
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range abandoned {
			if explained[a.ENCF] {
				l.twice++
				t.Errorf("%s was abandoned and has a document", a.ENCF)
			}
			explained[a.ENCF] = true
			l.abandoned++
			if a.Presence == store.NumberFound {
				l.found++
			}
		}
		for n := ranges[0].First; n < ranges[0].Next; n++ {
			if !explained[encf(n)] {
				l.gaps++
				t.Errorf("%s was taken, and nothing explains it", encf(n))
			}
		}
	}
}
