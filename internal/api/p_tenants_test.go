package api_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// neighbours are two taxpayers of one service, and the first one's other self
// in another environment of the same database.
type neighbours struct {
	*world           // of the one who asks
	foreign []string // every text that belongs to the others
	ids     map[string]resource
	cursor  string // of the other's list
}

func newNeighbours(t *testing.T, address string) *neighbours {
	t.Helper()
	opt := options{masterKey: filepath.Join(t.TempDir(), "master.key"), clock: newClock()}
	w := start(t, address, opt)
	n := &neighbours{world: w, ids: make(map[string]resource)}
	mark := func(v map[string]any) {
		v["buyer"] = map[string]any{"legal_name": "Comprador ajeno", "email": "ajeno@example.com"}
	}
	settle := func(of *world, name string) {
		for i := range 3 { // enough for a page to follow another
			a := of.create(fmt.Sprint(name, "-key-", i), body(fmt.Sprint(name, "-invoice-", i), mark))
			r := of.created(a)
			n.ids[fmt.Sprint(name, i)] = r
			n.foreign = append(n.foreign, r.ID, r.FiscalDocumentID, r.ExternalID)
		}
	}
	other := *w
	other.taxpayer = w.newTaxpayer()
	other.key = w.newKey(other.taxpayer, fiscal.Sandbox, apikey.AllScopes()...)
	settle(&other, "other")
	n.foreign = append(n.foreign, other.taxpayer, other.key, "Comprador ajeno", "ajeno@example.com")

	opt.env, opt.plan = fiscal.Certification, scripted{check: func(context.Context, *fiscal.Invoice) error { return nil }}
	elsewhere := node(t, address, opt)
	elsewhere.taxpayer = w.taxpayer
	elsewhere.key = elsewhere.newKey(w.taxpayer, fiscal.Certification, apikey.AllScopes()...)
	settle(elsewhere, "elsewhere")

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

// sees fails when an answer holds anything of the others.
func (n *neighbours) sees(t *testing.T, what string, a answer) {
	t.Helper()
	for _, text := range n.foreign {
		if bytes.Contains(a.body, []byte(text)) || strings.Contains(fmt.Sprint(a.header), text) {
			t.Errorf("%s tells %s: %s %v", what, text, a, a.header)
		}
	}
}

// The sweep is made of the document, so that a new operation is swept as well.
func TestP108NothingOfOthersIsSeen(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		n := newNeighbours(t, address)
		own := n.created(n.create("own-key", body("own")))
		other := n.ids["other0"].TaxpayerID
		scopeless := n.newKey(n.taxpayer, fiscal.Sandbox, apikey.WebhooksManage)
		swept := 0
		for _, o := range operations(t) {
			if !o.ofTaxpayer() {
				continue
			}
			for _, name := range []string{"other0", "elsewhere0"} {
				r := n.ids[name]
				resources := []string{r.ID, r.FiscalDocumentID, own.ID, own.FiscalDocumentID}
				if !o.named() {
					resources = resources[:1] // it is not in the path
				}
				for _, id := range resources {
					for _, taxpayer := range []string{n.taxpayer, other, store.NewID()} {
						for _, key := range []string{n.key, scopeless} {
							swept++
							path := o.at(taxpayer, id) + "?external_id=" + url.QueryEscape(r.ExternalID)
							a := n.send(request{method: o.method, path: path, key: key, idem: "sweep", body: body(r.ExternalID)})
							what := fmt.Sprintf("%s %s of %s", o.method, path, name)
							n.sees(t, what, a)
							mine := taxpayer == n.taxpayer && key == n.key
							refused := a.status == http.StatusForbidden || a.status == http.StatusNotFound
							if theirs := o.named() && (id == r.ID || id == r.FiscalDocumentID); (theirs || !mine) && !refused {
								t.Errorf("%s: %s", what, a)
							}
						}
					}
				}
			}
		}
		if swept < 90 {
			t.Errorf("only %d requests", swept)
		}
		found, err := n.store.ListInvoices(t.Context(), store.Scope{Environment: fiscal.Sandbox, TaxpayerID: n.taxpayer}, store.InvoiceFilter{Limit: 10})
		n.must(err)
		if len(found) != 1 {
			t.Errorf("the sweep wrote %d invoices", len(found)-1)
		}
	})
}

// What is unique, remembered or pointed at is so within one taxpayer of one
// environment.
func TestP108KeysCursorsAndNamesAreEachOnesOwn(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		n := newNeighbours(t, address)
		if a := n.send(request{path: "invoices?cursor=" + n.cursor}); a.status != http.StatusBadRequest {
			t.Errorf("another's cursor: %s", a)
		}
		for _, name := range []string{"other", "elsewhere"} {
			// The other's key, external id and body: a creation of one's own, neither a replay nor a conflict.
			a := n.create(name+"-key-0", body(name+"-invoice-0"))
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
			t.Errorf("%d invoices in the list of one's own two", len(all))
		}
	})
}
