package api_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/notify"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// tenants is an environment with three owners of data: its own taxpayer, another
// taxpayer, and its own taxpayer in another environment of the same database.
type tenants struct {
	*env                  // of the own taxpayer
	own, other, elsewhere owned
	cursor                string // of the list of the other taxpayer
}

// owned is what an owner has in the database. The sandbox has no endpoints and sources.
type owned struct {
	taxpayer, key    string
	invoices         []resource
	endpoint, source string // ids
	before           store.Endpoint
	texts            []string // that only the owner may see
}

// newTenants starts a service in each of the two environments.
func newTenants(t *testing.T, address string, environment, otherEnvironment fiscal.Environment) *tenants {
	t.Helper()
	opt := envOptions{
		masterKey: filepath.Join(t.TempDir(), "master.key"), clock: newClock(), environment: environment, poster: &stubPoster{},
		plan: stubPlan{check: func(context.Context, *fiscal.Invoice) error { return nil }},
	}
	e := newEnv(t, address, opt)
	other := *e
	other.taxpayer = e.newTaxpayer()
	other.key = e.newKey(other.taxpayer, environment, apikey.AllScopes()...)
	opt.environment = otherEnvironment
	elsewhere := newNode(t, address, opt)
	elsewhere.taxpayer = e.taxpayer
	elsewhere.key = elsewhere.newKey(e.taxpayer, otherEnvironment, apikey.AllScopes()...)

	n := &tenants{env: e, own: e.addData("own", 1), other: other.addData("other", 3), elsewhere: elsewhere.addData("elsewhere", 3)}
	n.other.texts = append(n.other.texts, other.taxpayer)
	var page struct {
		Meta struct {
			NextCursor string `json:"next_cursor"`
		} `json:"meta"`
	}
	decode(t, other.send(request{path: "invoices?limit=1"}).body, &page)
	n.cursor = page.Meta.NextCursor
	if n.cursor == "" {
		t.Fatal("no cursor")
	}
	return n
}

// addData gives the taxpayer of the environment invoices and, outside of the sandbox, an
// endpoint, an event and a source.
func (e *env) addData(name string, invoices int) owned {
	e.t.Helper()
	o := owned{taxpayer: e.taxpayer, key: e.key, endpoint: store.NewID(), source: store.NewID()}
	buyer, mail := "Comprador de "+name, name+"@buyer.example"
	o.texts = append(o.texts, e.key, buyer, mail)
	for i := range invoices {
		r := e.created(e.create(fmt.Sprint(name, "-key-", i), invoiceBody(fmt.Sprint(name, "-invoice-", i), func(v map[string]any) {
			v["buyer"] = map[string]any{"legal_name": buyer, "email": mail}
		})))
		o.invoices = append(o.invoices, r)
		o.texts = append(o.texts, r.ID, r.FiscalDocumentID, r.ExternalID)
	}
	if e.opt.environment == fiscal.Sandbox {
		return o
	}
	host := name + ".hooks.example"
	made, err := e.Endpoints.Create(e.t.Context(), notify.EndpointSpec{Scope: e.scope(), URL: "https://" + host, Kinds: []string{"*"}}, notify.Intent{})
	e.must(err)
	source, secret, err := e.Sources.Create(e.t.Context(), e.scope())
	e.must(err)
	added := e.addEvent("taxpayer.contingency_started")
	o.endpoint, o.source, o.before = made.Endpoint.ID, source.ID, made.Endpoint
	o.texts = append(o.texts, host, made.Endpoint.ID, made.Secret.Reveal(), added.ID, source.ID, secret.Reveal())
	return o
}

// ids returns the ids of the resources of an owner.
func (o owned) ids() []string {
	return []string{o.invoices[0].ID, o.invoices[0].FiscalDocumentID, o.endpoint}
}

// wantNothingOf reports every text of the owners that an answer has.
func wantNothingOf(t *testing.T, what string, a response, owners ...owned) {
	t.Helper()
	header := fmt.Sprint(a.header)
	for _, o := range owners {
		for _, text := range o.texts {
			if bytes.Contains(a.body, []byte(text)) || strings.Contains(header, text) {
				t.Errorf("%s shows %s: %s %v", what, text, a, a.header)
			}
		}
	}
}

// wantUnchanged reports what requests have added or changed.
func (n *tenants) wantUnchanged(t *testing.T) {
	t.Helper()
	for _, o := range []owned{n.own, n.other} {
		scope := store.Scope{Environment: n.opt.environment, TaxpayerID: o.taxpayer}
		found, err := n.store.ListInvoices(t.Context(), scope, store.InvoiceFilter{Limit: 10})
		n.must(err)
		if len(found) != len(o.invoices) {
			t.Errorf("refused requests wrote %d invoices", len(found)-len(o.invoices))
		}
	}
	for _, o := range []owned{n.own, n.other, n.elsewhere} {
		if o.before.ID == "" {
			continue
		}
		after, err := n.store.Endpoint(t.Context(), o.before.Scope, o.before.ID)
		n.must(err)
		if after.Status != store.EndpointEnabled || after.Secret.Version != 1 || !after.UpdatedAt.Equal(o.before.UpdatedAt) {
			t.Errorf("refused requests changed the endpoint of %s: %+v", o.before.Scope, after)
		}
	}
}

// Idempotency keys, cursors and external ids are separate for each taxpayer and
// environment.
func TestKeysCursorsAndExternalIDsAreSeparate(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		n := newTenants(t, address, fiscal.Sandbox, fiscal.Certification)
		wantStatus(t, "cursor of another taxpayer", n.send(request{path: "invoices?cursor=" + n.cursor}), http.StatusBadRequest)
		for name, theirs := range map[string]owned{"other": n.other, "elsewhere": n.elsewhere} {
			// Key, external id and body of the other: a new creation, no replay and no conflict.
			a := n.create(name+"-key-0", invoiceBody(name+"-invoice-0"))
			r := n.created(a)
			if a.header.Get("Idempotency-Replayed") != "" || r.ID == theirs.invoices[0].ID || r.TaxpayerID != n.taxpayer {
				t.Errorf("%s: %s", name, a)
			}
			var found []resource
			n.send(request{path: "invoices?external_id=" + name + "-invoice-0"}).data(t, &found)
			if len(found) != 1 || found[0].ID != r.ID {
				t.Errorf("%s: the list shows %+v", name, found)
			}
		}
		var all []resource
		n.send(request{path: "invoices?limit=100"}).data(t, &all)
		if len(all) != 3 {
			t.Errorf("%d invoices in the list, want 3", len(all))
		}
	})
}
