package api_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fiscalhub/fiscalhub/internal/api"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func TestNewChecksItsOptions(t *testing.T) {
	t.Parallel()
	e := newEnv(t, storetest.Address(t, "sqlite"), envOptions{})
	for name, change := range map[string]func(*api.Options){
		"Store":       func(o *api.Options) { o.Store = nil },
		"Pipeline":    func(o *api.Options) { o.Pipeline = nil },
		"Keyring":     func(o *api.Options) { o.Keyring = nil },
		"Environment": func(o *api.Options) { o.Environment = "moon" },
		"BaseURL":     func(o *api.Options) { o.BaseURL = "https://invoices.example/" },
		"RateLimit":   func(o *api.Options) { o.RateLimit = -1 },
		"Now":         func(o *api.Options) { o.Now = nil },
		"Log":         func(o *api.Options) { o.Log = nil },
	} {
		opt := e.apiOptions(prometheus.NewRegistry())
		change(&opt)
		if _, err := api.New(opt); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
