package simulator_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
)

func TestJournalKeepsTheLastRequests(t *testing.T) {
	t.Parallel()
	e := newEnv(t, func(o *simulator.Options) { o.Config.JournalSize = 3 })
	for range 5 {
		e.get(seedURL)
	}
	seqs := func() (all []uint64) {
		for _, q := range e.Requests() {
			all = append(all, q.Seq)
		}
		return all
	}
	if diff := cmp.Diff([]uint64{3, 4, 5}, seqs()); diff != "" {
		t.Error(diff)
	}
	must(t, e.Configure(func(c *simulator.Config) { c.JournalSize = 2 }))
	e.get(seedURL)
	if diff := cmp.Diff([]uint64{5, 6}, seqs()); diff != "" {
		t.Error(diff)
	}
	must(t, e.Configure(func(c *simulator.Config) { c.JournalSize = 3 }))
	e.get(seedURL)
	e.get(seedURL)
	if diff := cmp.Diff([]uint64{6, 7, 8}, seqs()); diff != "" {
		t.Error(diff)
	}
	must(t, e.Configure(func(c *simulator.Config) { c.Lean = true }))
	e.get(seedURL)
	if len(seqs()) != 0 {
		t.Error("the journal is kept although Lean is set")
	}
}
