package api_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/notify"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// tenants is an environment with three owners of data: its own taxpayer, another
// taxpayer ("other"), and its own taxpayer in another environment of the same
// database ("elsewhere").
type tenants struct {
	*env                 // of the own taxpayer
	foreign     []string // texts that belong to the others
	ids         map[string]resource
	endpointsOf map[string]store.Endpoint
	cursor      string // of the list of the other taxpayer
}

// newTenants starts a service in each of the two environments.
func newTenants(t *testing.T, address string, environment, otherEnvironment fiscal.Environment) *tenants {
	t.Helper()
	opt := envOptions{
		masterKey: filepath.Join(t.TempDir(), "master.key"), clock: newClock(), environment: environment, poster: &stubPoster{},
		plan: stubPlan{check: func(context.Context, *fiscal.Invoice) error { return nil }},
	}
	e := newEnv(t, address, opt)
	n := &tenants{env: e, ids: make(map[string]resource), endpointsOf: make(map[string]store.Endpoint)}
	mark := func(v map[string]any) {
		v["buyer"] = map[string]any{"legal_name": "Comprador ajeno", "email": "ajeno@example.com"}
	}
	addData := func(of *env, name string) {
		for i := range 3 { // enough for a second page
			a := of.create(fmt.Sprint(name, "-key-", i), invoiceBody(fmt.Sprint(name, "-invoice-", i), mark))
			r := of.created(a)
			n.ids[fmt.Sprint(name, i)] = r
			n.foreign = append(n.foreign, r.ID, r.FiscalDocumentID, r.ExternalID)
		}
		if of.opt.environment == fiscal.Sandbox {
			return // the sandbox sends no events
		}
		scope := store.Scope{Environment: of.opt.environment, TaxpayerID: of.taxpayer}
		made, err := of.endpoints().Create(t.Context(), notify.EndpointSpec{Scope: scope, URL: "https://ajeno.example/" + name, Kinds: []string{"*"}}, notify.Intent{})
		n.must(err)
		added := of.addEvent("taxpayer.contingency_started")
		n.endpointsOf[name] = made.Endpoint
		n.foreign = append(n.foreign, made.Endpoint.ID, made.Secret.Reveal(), "ajeno.example", added.ID)
	}
	other := *e
	other.taxpayer = e.newTaxpayer()
	other.key = e.newKey(other.taxpayer, environment, apikey.AllScopes()...)
	addData(&other, "other")
	n.foreign = append(n.foreign, other.taxpayer, other.key, "Comprador ajeno", "ajeno@example.com")

	opt.environment = otherEnvironment
	elsewhere := newNode(t, address, opt)
	elsewhere.taxpayer = e.taxpayer
	elsewhere.key = elsewhere.newKey(e.taxpayer, otherEnvironment, apikey.AllScopes()...)
	addData(elsewhere, "elsewhere")

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

// wantNothingForeign reports every text of the others in an answer.
func (n *tenants) wantNothingForeign(t *testing.T, what string, a response) {
	t.Helper()
	for _, text := range n.foreign {
		if bytes.Contains(a.body, []byte(text)) || strings.Contains(fmt.Sprint(a.header), text) {
			t.Errorf("%s shows %s: %s %v", what, text, a, a.header)
		}
	}
}

// The operations come from the OpenAPI document, so that new ones are tested too.
func TestNoOperationShowsDataOfOthers(t *testing.T) {
	t.Parallel()
	for environment, other := range map[fiscal.Environment]fiscal.Environment{
		fiscal.Sandbox: fiscal.Certification, fiscal.Certification: fiscal.Production,
	} {
		t.Run(string(environment), func(t *testing.T) {
			t.Parallel()
			storetest.EachAddress(t, func(t *testing.T, address string) { newTenants(t, address, environment, other).sweep(t) })
		})
	}
}

func (n *tenants) sweep(t *testing.T) {
	t.Helper()
	own := n.created(n.create("own-key", invoiceBody("own")))
	other := n.ids["other0"].TaxpayerID
	keys := map[apikey.Scope]string{}
	for _, s := range []apikey.Scope{apikey.WebhooksManage, apikey.InvoicesRead} {
		keys[s] = n.newKey(n.taxpayer, n.opt.environment, s)
	}
	requests := 0
	for _, o := range operations(t) {
		if !o.ofTaxpayer() {
			continue
		}
		for _, name := range []string{"other", "elsewhere"} {
			r := n.ids[name+"0"]
			theirs := []string{r.ID, r.FiscalDocumentID}
			if hook := n.endpointsOf[name].ID; hook != "" {
				theirs = append(theirs, hook)
			}
			resources := append(slices.Clone(theirs), own.ID, own.FiscalDocumentID)
			if !o.named() {
				resources = resources[:1] // the path has no resource
			}
			for _, id := range resources {
				for _, taxpayer := range []string{n.taxpayer, other, store.NewID()} {
					for _, key := range []string{n.key, keys[o.uselessScope()]} {
						requests++
						path := o.pathFor(taxpayer, id) + "?external_id=" + url.QueryEscape(r.ExternalID)
						q := o.validRequest(path)
						q.path, q.key, q.idem = path, key, "sweep"
						if strings.HasSuffix(o.path, "/invoices") {
							q.body = invoiceBody(r.ExternalID)
						}
						a := n.send(q)
						what := fmt.Sprintf("%s %s of %s", o.method, path, name)
						n.wantNothingForeign(t, what, a)
						mine := taxpayer == n.taxpayer && key == n.key
						refused := a.status == http.StatusForbidden || a.status == http.StatusNotFound
						if foreign := o.named() && slices.Contains(theirs, id); (foreign || !mine) && !refused {
							t.Errorf("%s: %s", what, a)
						}
					}
				}
			}
		}
	}
	if requests < 250 {
		t.Errorf("only %d requests", requests)
	}
	found, err := n.store.ListInvoices(t.Context(), store.Scope{Environment: n.opt.environment, TaxpayerID: n.taxpayer}, store.InvoiceFilter{Limit: 10})
	n.must(err)
	if len(found) != 1 {
		t.Errorf("the sweep wrote %d invoices", len(found)-1)
	}
	for name, before := range n.endpointsOf {
		after, err := n.store.Endpoint(t.Context(), before.Scope, before.ID)
		n.must(err)
		if after.Status != store.EndpointEnabled || after.Secret.Version != 1 || !after.UpdatedAt.Equal(before.UpdatedAt) {
			t.Errorf("the sweep changed the endpoint of %s: %+v", name, after)
		}
	}
}

// Idempotency keys, cursors and external ids are separate for each taxpayer and
// environment.
func TestKeysCursorsAndExternalIDsAreSeparate(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		n := newTenants(t, address, fiscal.Sandbox, fiscal.Certification)
		if a := n.send(request{path: "invoices?cursor=" + n.cursor}); a.status != http.StatusBadRequest {
			t.Errorf("cursor of another taxpayer: %s", a)
		}
		for _, name := range []string{"other", "elsewhere"} {
			// Key, external id and body of the other: a new creation, no replay and no conflict.
			a := n.create(name+"-key-0", invoiceBody(name+"-invoice-0"))
			r := n.created(a)
			if a.header.Get("Idempotency-Replayed") != "" || r.ID == n.ids[name+"0"].ID || r.TaxpayerID != n.taxpayer {
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
		if len(all) != 2 {
			t.Errorf("%d invoices in the list, want 2", len(all))
		}
	})
}
