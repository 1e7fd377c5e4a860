package inbox_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/evidence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/inbox"
	"github.com/fiscalhub/fiscalhub/internal/live/livetest"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/reply"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// responses returns the events about commercial responses: kind, result and signer of
// each.
func (w *env) responses(inv store.Invoice) []string {
	w.T.Helper()
	all := []string{}
	for _, e := range w.Feed() {
		if e.Data.InvoiceID == inv.ID && strings.Contains(e.Type, "commercial_response") {
			all = append(all, strings.TrimPrefix(e.Type, "fiscal_document.commercial_")+" "+e.Data.Result+" "+e.Data.Signer)
		}
	}
	return all
}

func (w *env) wantResponses(inv store.Invoice, want ...string) {
	w.T.Helper()
	if diff := cmp.Diff(want, w.responses(inv)); diff != "" {
		w.T.Errorf("events about responses (-want +got):\n%s", diff)
	}
}

// confirm lets an operator confirm a signer.
func (w *env) confirm(signer string) {
	w.T.Helper()
	w.Must(w.Store().Update(w.T.Context(), func(tx *store.Tx) error {
		return tx.ConfirmBuyerSigner(w.T.Context(), store.BuyerSigner{Scope: w.Scope, BuyerRNC: livetest.BuyerRNC, Signer: signer, CreatedAt: w.Now()})
	}))
	_, err := w.Inbox.ApplyConfirmed(w.T.Context())
	w.Must(err)
}

// A stranger with a trusted certificate rejects a document in the name of the buyer,
// before the buyer approves it. The buyer's approval stands.
func TestAStrangersResponseIsNotTheBuyers(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{Receiver: true})
		inv := w.Create(fiscal.FiscalCredit, 1000)
		w.Drive(time.Hour)
		for range 2 {
			w.Must(w.Approve(w.RespondAs(livetest.Stranger, inv, livetest.Rejected("falso"))))
		}
		w.Must(w.Approve(w.Respond(inv, nil)))
		w.wantResponses(inv, "response_unconfirmed rejected "+livetest.Stranger, "response accepted "+livetest.BuyerSigner)
		if got := w.Read(inv).Messages; !slices.Equal(got, []string{"Aprobación comercial"}) {
			t.Errorf("messages %q", got)
		}
		w.Clean()
	})
}

// A signer is known by the certificate, by an acknowledgement from the buyer's address, or
// because an operator has confirmed it. A document that was not delivered has no
// acknowledgement; one that a source passes on did not come from the buyer's address.
func TestSignersWhoAreKnownToActForTheBuyer(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{})
		named, relayed, confirmed := w.Create(fiscal.FiscalCredit, 1000), w.Create(fiscal.FiscalCredit, 2000), w.Create(fiscal.FiscalCredit, 3000)
		w.Drive(time.Hour)

		w.Must(w.Approve(w.RespondAs(livetest.BuyerRNC, named, nil)))
		w.wantResponses(named, "response accepted "+livetest.BuyerRNC)

		source := store.Source{Scope: w.Scope, ID: store.NewID(), Kinds: []string{event.InboundReceipt}}
		_, err := w.Inbox.Receive(t.Context(), inbox.Message{
			Source: source, MessageID: "m1", Kind: event.InboundReceipt, ENCF: w.Read(relayed).ENCF, XML: w.ReceiptOf(t, w.Read(relayed).ENCF, livetest.BuyerRNC),
		})
		w.Must(err)
		w.Must(w.Approve(w.Respond(relayed, nil)))
		w.wantResponses(relayed, "response_unconfirmed accepted "+livetest.BuyerSigner)

		w.Must(w.Approve(w.RespondAs(livetest.Stranger, confirmed, livetest.Rejected("falso"))))
		w.Must(w.Approve(w.Respond(confirmed, nil)))
		w.confirm(livetest.BuyerSigner)
		w.Must(w.Approve(w.Respond(confirmed, nil))) // a repetition
		w.wantResponses(relayed, "response_unconfirmed accepted "+livetest.BuyerSigner, "response accepted "+livetest.BuyerSigner)
		w.wantResponses(confirmed, "response_unconfirmed rejected "+livetest.Stranger, "response_unconfirmed accepted "+livetest.BuyerSigner, "response accepted "+livetest.BuyerSigner)
		if got := w.Read(confirmed).Messages; !slices.Equal(got, []string{"Aprobación comercial"}) {
			t.Errorf("messages %q", got)
		}
		left, err := w.Store().UnconfirmedResponses(t.Context(), w.Scope, confirmed.DocumentID)
		if err != nil || len(left) != 1 || left[0].Signer != livetest.Stranger {
			t.Errorf("kept apart: %+v, %v", left, err)
		}
	})
}

// A response that a program of an earlier version stored without asking who signed it
// does not stand in the way of the buyer.
func TestAStoredResponseOfAStrangerDoesNotStand(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{Receiver: true})
		inv := w.Create(fiscal.FiscalCredit, 1000)
		w.Drive(time.Hour)
		old := pipeline.Finding{Item: evidence.Item{Kind: evidence.Commercial, Verdict: fiscal.VerdictRejected, Signer: livetest.Stranger, At: w.Now()}}
		row, err := old.Row(w.Scope, inv.DocumentID)
		w.Must(err)
		w.Must(w.Store().Commit(t.Context(), new(store.Batch).AddEvidence(row)))
		w.Must(w.Approve(w.Respond(inv, nil)))
		w.wantResponses(inv, "response accepted "+livetest.BuyerSigner)
	})
}

// A flood of responses to one document fills a bounded number of rows, and strangers
// never close the document for the buyer.
func TestAFloodOfResponsesIsBounded(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{Receiver: true})
		var log bytes.Buffer
		w.Options.Log = slog.New(slog.NewTextHandler(&log, nil))
		w.StartEngine()
		inv := w.Create(fiscal.FiscalCredit, 1000)
		w.Drive(time.Hour)
		before, err := livetest.ReadEvidence(t.Context(), w.Store(), w.Scope, inv.DocumentID)
		w.Must(err)
		var refused int
		for i := range 8 {
			err := w.Approve(w.RespondAs(fmt.Sprintf("4020000%04d", i), inv, livetest.Rejected(fmt.Sprint("falso ", i))))
			if errors.Is(err, reply.ErrTooMany) {
				refused++
				continue
			}
			w.Must(err)
		}
		for i := range 20 {
			w.Must(w.Approve(w.Respond(inv, livetest.Rejected(fmt.Sprint("motivo ", i)))))
		}
		kept, err := w.Store().UnconfirmedResponses(t.Context(), w.Scope, inv.DocumentID)
		w.Must(err)
		known, err := livetest.ReadEvidence(t.Context(), w.Store(), w.Scope, inv.DocumentID)
		w.Must(err)
		if len(kept) != store.MaxUnconfirmedResponses || refused != 4 || len(known) != len(before)+1 {
			t.Errorf("%d unconfirmed responses, %d refused, %d items of evidence", len(kept), refused, len(known)-len(before))
		}
		if got := w.responses(inv); len(got) != 5 || got[4] != "response rejected "+livetest.BuyerSigner {
			t.Errorf("events %q", got)
		}
		if n := strings.Count(log.String(), "are refused"); n != 1 {
			t.Errorf("the limit is logged %d times:\n%s", n, &log)
		}
	})
}
