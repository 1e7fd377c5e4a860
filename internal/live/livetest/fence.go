package livetest

import (
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// Guard restarts the service with a witness, as a server starts.
func (w *Env) Guard(path string) {
	w.T.Helper()
	f, err := fence.Open(w.T.Context(), fence.Options{Store: w.Store(), Env: w.Options.Env, Path: path, Now: w.Now, Log: w.Options.Log, Wait: 2 * time.Second})
	w.Must(err)
	w.T.Cleanup(func() { _ = f.Close() })
	w.Options.Fence = f
	w.Start()
}

// Fenced returns the ranges that are fenced.
func (w *Env) Fenced() []string {
	w.T.Helper()
	all, err := w.Store().NumberRanges(w.T.Context())
	w.Must(err)
	list := []string{}
	for _, s := range all {
		if !s.FencedAt.IsZero() {
			list = append(list, fmt.Sprintf("%s at %d", s.Type, s.Next))
		}
	}
	return list
}

// Releaser returns what releases fenced ranges.
func (w *Env) Releaser() fence.Releaser {
	return fence.Releaser{Store: w.Store(), Authority: w.Options.Authority, Identities: w.Options.Identities, Fence: w.Options.Fence, Now: w.Now}
}

// Refused asserts that no invoice of a type is taken, because its range is fenced.
func (w *Env) Refused(kind fiscal.Type) {
	w.T.Helper()
	missing, err := w.Plan.Ready(w.T.Context(), w.Scope, kind)
	w.Must(err)
	if diff := cmp.Diff([]string{"sequence.fenced"}, Codes(missing)); diff != "" {
		w.T.Errorf("type %s (-want +got):\n%s", kind, diff)
	}
}

// Equal asserts that two lists are equal.
func (w *Env) Equal(what string, want, got []string) {
	w.T.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		w.T.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// Ledger asserts that every number below the next one has a document or was
// given up, and none both.
func (w *Env) Ledger() {
	w.T.Helper()
	all, err := w.Store().NumberRanges(w.T.Context())
	w.Must(err)
	for _, s := range all {
		low, high := fmt.Sprintf("E%s%010d", s.Type, s.First), fmt.Sprintf("E%s%010d", s.Type, s.Last)
		burned, err := w.Store().AbandonedNumbers(w.T.Context(), w.Scope, IssuerRNC, low, high)
		w.Must(err)
		seen := map[string]int{}
		for _, b := range burned {
			seen[b.ENCF]++
		}
		page, err := w.Store().ListInvoices(w.T.Context(), w.Scope, store.InvoiceFilter{Limit: 1000})
		w.Must(err)
		for _, inv := range page {
			inv = w.Read(inv) // a list shows less
			if inv.Type == s.Type && inv.ENCF != "" {
				seen[inv.ENCF]++
			}
		}
		for n := s.First; n < s.Next; n++ {
			if encf := fmt.Sprintf("E%s%010d", s.Type, n); seen[encf] != 1 {
				w.T.Errorf("%s stands in the ledger %d times", encf, seen[encf])
			}
		}
	}
}

// Maintain lets the authority be out of reach, or back.
func (w *Env) Maintain(is bool) {
	w.T.Helper()
	w.Must(w.Sim.Configure(func(c *simulator.Config) { c.Maintenance = is }))
}

// Pass lets time pass in steps of ten minutes, with the work and the watch of a node.
func (w *Env) Pass(steps int) {
	w.T.Helper()
	for range steps {
		w.Drive(10 * time.Minute)
		w.Clock.Advance(10 * time.Minute)
		w.Must(w.Watcher.CheckOutage(w.T.Context(), w.Signals()))
	}
}
