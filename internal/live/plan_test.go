package live_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live"
	"github.com/fiscalhub/fiscalhub/internal/live/livetest"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// New refuses options without which a plan cannot work.
func TestNewRefusesIncompleteOptions(t *testing.T) {
	t.Parallel()
	whole := newEnv(t, storetest.Address(t, "sqlite"), envOptions{}).Options
	for name, remove := range map[string]func(*live.Options){
		"store":      func(o *live.Options) { o.Store = nil },
		"env":        func(o *live.Options) { o.Env = "" },
		"authority":  func(o *live.Options) { o.Authority = nil },
		"identities": func(o *live.Options) { o.Identities = nil },
		"now":        func(o *live.Options) { o.Now = nil },
		"log":        func(o *live.Options) { o.Log = nil },
	} {
		o := whole
		remove(&o)
		if _, err := live.New(o); err == nil {
			t.Errorf("New without %s returned no error", name)
		}
	}
}

func TestReadyChecksTheTaxpayer(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{})
		unknown := store.Scope{Environment: fiscal.Production, TaxpayerID: store.NewID()}
		if _, err := w.Plan.Ready(t.Context(), unknown, fiscal.Consumer); err == nil {
			t.Error("a taxpayer that does not exist is ready")
		}
		bare := store.Taxpayer{ID: unknown.TaxpayerID, RNC: "199000039", LegalName: "Otra, SRL", Phones: []string{}, CreatedAt: w.Now(), UpdatedAt: w.Now()}
		w.Must(w.Store().Update(t.Context(), func(tx *store.Tx) error { return tx.CreateTaxpayer(t.Context(), bare) }))
		missing, err := w.Plan.Ready(t.Context(), unknown, fiscal.Consumer)
		w.Must(err)
		want := []string{"taxpayer.profile_incomplete", "certificate.missing", "sequence.missing"}
		if diff := cmp.Diff(want, livetest.Codes(missing)); diff != "" {
			t.Errorf("missing (-want +got):\n%s", diff)
		}
		if _, err := w.Plan.Do(t.Context(), pipeline.Work{}); err == nil {
			t.Error("the plan did a stage without a name")
		}
	})
}
