package pipeline

import (
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// A synthetic document causes no event.
func TestSandboxEmitsNoEvents(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		b := newEnv(t, address, Sandbox{})
		b.add("A", "sandbox-scenario/submitted", "submitted")
		b.RunJob(t.Context(), b.claimOne())
		if events, err := b.o.Store.Feed(t.Context(), b.scope, 0, 10); err != nil || len(events) != 0 {
			t.Errorf("%v, %v", events, err)
		}
	})
}
