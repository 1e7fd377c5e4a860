package live

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// New refuses options without which a plan cannot work.
func TestNewRefusesIncompleteOptions(t *testing.T) {
	t.Parallel()
	whole := newEnv(t, storetest.Address(t, "sqlite"), envOptions{}).options
	for name, remove := range map[string]func(*Options){
		"store":      func(o *Options) { o.Store = nil },
		"env":        func(o *Options) { o.Env = "" },
		"authority":  func(o *Options) { o.Authority = nil },
		"identities": func(o *Options) { o.Identities = nil },
		"now":        func(o *Options) { o.Now = nil },
		"log":        func(o *Options) { o.Log = nil },
	} {
		o := whole
		remove(&o)
		if _, err := New(o); err == nil {
			t.Errorf("New without %s returned no error", name)
		}
	}
}

func TestReadyChecksTheTaxpayer(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{})
		unknown := store.Scope{Environment: fiscal.Production, TaxpayerID: store.NewID()}
		if _, err := w.plan.Ready(t.Context(), unknown, fiscal.Consumer); err == nil {
			t.Error("a taxpayer that does not exist is ready")
		}
		bare := store.Taxpayer{ID: unknown.TaxpayerID, RNC: "199000039", LegalName: "Otra, SRL", Phones: []string{}, CreatedAt: w.now(), UpdatedAt: w.now()}
		w.must(w.store().Update(t.Context(), func(tx *store.Tx) error { return tx.CreateTaxpayer(t.Context(), bare) }))
		missing, err := w.plan.Ready(t.Context(), unknown, fiscal.Consumer)
		w.must(err)
		want := []string{"taxpayer.profile_incomplete", "certificate.missing", "sequence.missing"}
		if diff := cmp.Diff(want, codes(missing)); diff != "" {
			t.Errorf("missing (-want +got):\n%s", diff)
		}
		if _, err := w.plan.Do(t.Context(), pipeline.Work{}); err == nil {
			t.Error("the plan did a stage without a name")
		}
	})
}
