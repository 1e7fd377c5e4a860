package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// liveScope adds a taxpayer and returns its scope in certification.
func liveScope(t *testing.T, s *store.Store) store.Scope {
	t.Helper()
	scope := addScope(t, s)
	scope.Environment = fiscal.Certification
	return scope
}

func TestBuyerSignersAreKnownByAcknowledgementOrOperator(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := liveScope(t, s)
		signer := store.BuyerSigner{Scope: scope, BuyerRNC: "131000024", Signer: "00112345678", Basis: store.ByAcknowledgement, DocumentID: "d1", CreatedAt: noon}
		known := func(scope store.Scope, buyer, who string) bool {
			t.Helper()
			is, err := s.IsBuyerSigner(t.Context(), scope, buyer, who)
			if err != nil {
				t.Fatal(err)
			}
			return is
		}
		if known(scope, signer.BuyerRNC, signer.Signer) {
			t.Error("known before anything was learnt")
		}
		for range 2 { // a second acknowledgement changes nothing
			later := signer
			if err := s.Commit(t.Context(), new(store.Batch).LearnBuyerSigner(later)); err != nil {
				t.Fatal(err)
			}
		}
		other := scope
		other.Environment = fiscal.Production
		if !known(scope, signer.BuyerRNC, signer.Signer) || known(scope, "131000032", signer.Signer) || known(scope, signer.BuyerRNC, "00100000000") || known(other, signer.BuyerRNC, signer.Signer) {
			t.Error("a signer is known for one buyer of one taxpayer in one environment")
		}
		list := func() []store.BuyerSigner {
			t.Helper()
			all, err := s.BuyerSigners(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return all
		}
		if diff := cmp.Diff([]store.BuyerSigner{signer}, list()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		confirmed := signer
		confirmed.Basis, confirmed.DocumentID = store.ByOperator, ""
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.ConfirmBuyerSigner(ctx, signer) })
		if diff := cmp.Diff([]store.BuyerSigner{confirmed}, list()); diff != "" {
			t.Errorf("after the confirmation (-want +got):\n%s", diff)
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.RemoveBuyerSigner(ctx, signer) })
		if known(scope, signer.BuyerRNC, signer.Signer) {
			t.Error("known after the removal")
		}
		remove := func(tx *store.Tx) error { return tx.RemoveBuyerSigner(t.Context(), signer) }
		if err := s.Update(t.Context(), remove); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the second removal: %v", err)
		}
		signer.TaxpayerID = store.NewID()
		confirm := func(tx *store.Tx) error { return tx.ConfirmBuyerSigner(t.Context(), signer) }
		if err := s.Update(t.Context(), confirm); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a confirmation for an unknown taxpayer: %v", err)
		}
	})
}

func TestUnconfirmedResponsesAreLimited(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := liveScope(t, s)
		document := store.NewID()
		response := func(number int64, signer string, accepted bool) store.UnconfirmedResponse {
			return store.UnconfirmedResponse{
				Scope: scope, DocumentID: document, Number: number, BuyerRNC: "131000024", Signer: signer, Accepted: accepted,
				Reason: "«no»", At: noon.Add(time.Duration(number) * time.Second), XML: []byte("<ACECF/>"),
			}
		}
		add := func(u store.UnconfirmedResponse) error {
			return s.Commit(t.Context(), new(store.Batch).AddUnconfirmedResponse(u))
		}
		for _, u := range []store.UnconfirmedResponse{response(1, "a", true), response(2, "a", false), response(3, "b", true), response(4, "c", true)} {
			if err := add(u); err != nil {
				t.Fatal(err)
			}
		}
		for name, u := range map[string]store.UnconfirmedResponse{"a number that is taken": response(4, "d", true), "a response that is there": response(5, "a", true)} {
			if err := add(u); err == nil {
				t.Errorf("%s: stored", name)
			}
		}
		if err := add(response(store.MaxUnconfirmedResponses+1, "e", true)); err == nil {
			t.Error("the table has more responses than its limit")
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return tx.ConfirmBuyerSigner(ctx, store.BuyerSigner{Scope: scope, BuyerRNC: "131000024", Signer: "a", CreatedAt: noon})
		})
		confirmed, err := s.ConfirmedResponses(t.Context(), scope.Environment, 10)
		if diff := cmp.Diff([]store.UnconfirmedResponse{response(1, "a", true), response(2, "a", false)}, confirmed); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		for _, want := range []bool{true, false} {
			update(t, s, func(ctx context.Context, tx *store.Tx) error {
				taken, err := tx.TakeUnconfirmedResponse(ctx, confirmed[0])
				if taken != want {
					t.Errorf("taken %v, want %v", taken, want)
				}
				return err
			})
		}
		rest, err := s.UnconfirmedResponses(t.Context(), scope, document)
		if diff := cmp.Diff([]store.UnconfirmedResponse{response(2, "a", false), response(3, "b", true), response(4, "c", true)}, rest); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		unknown, err := s.UnknownSigners(t.Context())
		if err != nil || len(unknown) != 3 || unknown[1].Signer != "b" || unknown[1].Responses != 1 || !unknown[1].Since.Equal(rest[1].At) {
			t.Errorf("%+v, %v", unknown, err)
		}
	})
}
