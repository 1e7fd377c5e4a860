package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// page is a page of invoices.
type page struct {
	Data []resource `json:"data"`
	Meta struct {
		NextCursor *string `json:"next_cursor"`
	} `json:"meta"`
}

// list reads a page of invoices.
func (e *env) list(query string) page {
	e.t.Helper()
	a := e.send(request{path: "invoices?" + query})
	if a.status != http.StatusOK {
		e.t.Fatalf("list %s: %s", query, a)
	}
	var p page
	e.must(json.Unmarshal(a.body, &p))
	return p
}

// newInvoices returns n invoices, oldest first.
func (e *env) newInvoices(prefix string, n int, status func(i int) fiscal.Status) []store.Invoice {
	list := make([]store.Invoice, n)
	for i := range n {
		list[i] = store.Invoice{
			Scope: e.scope(), ID: store.NewID(), DocumentID: store.NewID(), ExternalID: fmt.Sprintf("%s-%d", prefix, i),
			Type: fiscal.Consumer, Status: status(i), Revision: 1, Currency: "DOP", IssueDate: "2026-11-14",
			Subtotal: "1", DiscountTotal: "0", TaxTotal: "0", Total: "1", Paid: "1", Balance: "0", DocumentTotal: "1.00",
			CreatedAt: e.clock.now(), UpdatedAt: e.clock.now(),
		}
	}
	return list
}

// storeInvoices stores n invoices without the API.
func (e *env) storeInvoices(prefix string, n int, status func(i int) fiscal.Status) []store.Invoice {
	e.t.Helper()
	list := e.newInvoices(prefix, n, status)
	e.must(e.store.ImportInvoices(e.t.Context(), list, []byte(`{}`)))
	return list
}

func accepted(int) fiscal.Status { return fiscal.Accepted }

func TestInvalidQueriesAreRefused(t *testing.T) {
	tests := map[string]string{ // query and expected problems
		"limit=0": "limit out_of_range", "limit=101": "limit out_of_range", "limit=-1": "limit out_of_range", "limit=999999": "limit out_of_range",
		"limit=abc": "limit invalid_format", "limit=1.0": "limit invalid_format", "limit=05": "limit invalid_format", "limit=%2B5": "limit invalid_format",
		"limit=+5": "limit invalid_format", "limit=1e1": "limit invalid_format", "limit=0x5": "limit invalid_format", "limit=5%20": "limit invalid_format",
		"limit=99999999999999999999": "limit invalid_format", "limit=%D9%A3": "limit invalid_format",
		"limit=": "limit too_short", "limit": "limit too_short", "external_id=": "external_id too_short", "cursor=": "cursor too_short",
		"limit=5&limit=5": "limit duplicate_parameter", "limit=5&l%69mit=6": "limit duplicate_parameter",
		"extenal_id=A": "extenal_id unknown_parameter", "Limit=5": "Limit unknown_parameter", "api_key=x": "api_key unknown_parameter",
		"limit=5;status=accepted": "invalid_format", "external_id=a;b": "invalid_format",
		"external_id=%ff": "external_id invalid_format", "external_id=%00": "external_id invalid_format", "external_id=a%0ab": "external_id invalid_format",
		"external_id=%c3%28": "external_id invalid_format", "external_id=%zz": "external_id invalid_format", "external_id=%": "external_id invalid_format",
		"%ff=1": "invalid_format", "%zz=1": "invalid_format", "=": "unknown_parameter",
		"status=done": "status invalid_enum", "status=Accepted": "status invalid_enum", "status=accepted,rejected": "status invalid_enum",
		"external_id=" + strings.Repeat("x", 201): "external_id too_long", "external_id=" + strings.Repeat("%F0%9F%A7%BE", 201): "external_id too_long",
		"cursor=" + strings.Repeat("A", 501): "cursor invalid_cursor", "cursor=x": "cursor invalid_cursor",
		"status=x&limit=0&cursor=x": "status invalid_enum|limit out_of_range|cursor invalid_cursor",
	}
	oneEngine(t, envOptions{}, func(t *testing.T, e *env) {
		for query, want := range tests {
			a := e.send(request{path: "invoices?" + query})
			wantCode(t, query, a, http.StatusBadRequest, "bad_request")
			if got := strings.Join(problemsOf(t, a), "|"); got != want {
				t.Errorf("%.60s: details %q, want %q", query, got, want)
			}
			if len(a.body) > 1000 {
				t.Errorf("%.60s: the answer has %d bytes", query, len(a.body))
			}
		}
		for query, want := range map[string]string{
			"": "external_id required", "external_id=": "external_id too_short", "external_id=a&external_id=a": "external_id duplicate_parameter",
			"external_id=a&limit=5": "limit unknown_parameter", "external_id=" + strings.Repeat("x", 201): "external_id too_long",
			"external_id=%00": "external_id invalid_format",
		} {
			a := e.send(request{path: "fiscal-documents?" + query})
			wantCode(t, query, a, http.StatusBadRequest, "bad_request")
			if got := strings.Join(problemsOf(t, a), "|"); got != want {
				t.Errorf("documents %.60s: details %q, want %q", query, got, want)
			}
		}
		a := e.send(request{method: http.MethodPost, path: "invoices?dry_run=1", idem: "k", body: invoiceBody("A")})
		wantCode(t, "a creation has no parameters", a, http.StatusBadRequest, "bad_request")
		inv := e.created(e.create("k", invoiceBody("A")))
		for _, path := range []string{"invoices/" + inv.ID, "fiscal-documents/" + inv.FiscalDocumentID} {
			if a := e.send(request{path: path + "?x=1&x=%ff;"}); a.status != http.StatusOK {
				t.Errorf("reading one resource ignores the query, got %s", a)
			}
		}
	})
}

// Two bytes of a query must not cause a hundred bytes of the answer.
func TestQueryOfManyParametersGetsAShortAnswer(t *testing.T) {
	oneEngine(t, envOptions{}, func(t *testing.T, e *env) {
		a := e.send(request{path: "invoices?" + strings.Repeat("a&", 5000)})
		wantCode(t, "5000 parameters", a, http.StatusBadRequest, "bad_request")
		if n := len(a.details(t)); n > 101 || len(a.body) > 20_000 {
			t.Errorf("%d details, %d bytes", n, len(a.body))
		}
	})
}

// The pages together are the list as it was when paging began, although invoices
// are stored meanwhile and the page size changes.
func TestPagingWhileInvoicesAreStored(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		const before = 2000
		var want []string
		for _, inv := range e.storeInvoices("old", before, accepted) {
			want = append(want, inv.ID)
		}
		slices.Reverse(want)
		stop := make(chan struct{})
		var storing sync.WaitGroup
		storing.Go(func() {
			every := time.NewTicker(20 * time.Millisecond)
			defer every.Stop()
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				case <-every.C:
				}
				if err := e.store.ImportInvoices(t.Context(), e.newInvoices(fmt.Sprintf("new-%d", i), 3, accepted), []byte(`{}`)); err != nil {
					t.Error(err)
				}
			}
		})
		defer func() { close(stop); storing.Wait() }()

		var got []string
		sizes := []int{100, 37, 99, 1, 100, 64, 2}
		cursor, pages := "", 0
		for ; ; pages++ {
			size := sizes[pages%len(sizes)]
			p := e.list(fmt.Sprintf("limit=%d", size) + cursor)
			for _, inv := range p.Data {
				got = append(got, inv.ID)
			}
			if p.Meta.NextCursor == nil {
				break
			}
			if len(p.Data) != size {
				t.Fatalf("a page of %d has %d invoices and is not the last", size, len(p.Data))
			}
			cursor = "&cursor=" + *p.Meta.NextCursor
		}
		// The first page may begin with invoices that were stored before it was read.
		start := slices.Index(got, want[0])
		if start < 0 || start > sizes[0] {
			t.Fatalf("the newest of the old invoices is at %d of %d", start, len(got))
		}
		if !slices.Equal(got[start:], want) {
			t.Errorf("%d invoices in %d pages, want the %d that were there", len(got)-start, pages, before)
		}
		if !slices.IsSortedFunc(got, func(a, b string) int { return strings.Compare(b, a) }) {
			t.Error("the list is not newest first")
		}
		if pages < 20 {
			t.Errorf("only %d pages", pages)
		}
	})
}

func TestListFilters(t *testing.T) {
	exotic := []string{
		"🧾 recibo", "100%", "a+b", "a b", `"quoted"`, "it's", "a&b=c", "#1", "á", "a\u0301", "ＡＢ", "%41", "_", "a_b", "*", `back\slash`, "//", "?",
		"\u007f", "null", " lead", "trail ", "日本語", "<b>", "{}", "a;b", "E'x'",
	}
	statuses := fiscal.Statuses()
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		for i, id := range exotic {
			inv := e.created(e.create(fmt.Sprintf("k%d", i), invoiceBody(id)))
			for _, spelt := range []string{url.QueryEscape(id), url.PathEscape(id)} {
				if strings.ContainsAny(spelt, "+&;") && spelt != url.QueryEscape(id) {
					continue // PathEscape does not escape these, and they have a meaning in a query
				}
				p := e.list("external_id=" + spelt)
				if len(p.Data) != 1 || p.Data[0].ID != inv.ID || p.Data[0].ExternalID != id || p.Meta.NextCursor != nil {
					t.Errorf("%q as %s: %+v", id, spelt, p)
				}
			}
		}
		if p := e.list("external_id=" + url.QueryEscape("%")); len(p.Data) != 0 {
			t.Errorf("a wildcard matches %d", len(p.Data))
		}
		e.storeInvoices("status", 45, func(i int) fiscal.Status { return statuses[i%len(statuses)] })
		for _, status := range statuses {
			want := 5
			if status == fiscal.Accepted {
				want += len(exotic)
			}
			got, cursor := 0, ""
			for {
				p := e.list("limit=2&status=" + string(status) + cursor)
				for _, inv := range p.Data {
					if got++; inv.Status != string(status) {
						t.Errorf("asked for %s, got %s", status, inv.Status)
					}
				}
				if p.Meta.NextCursor == nil {
					break
				}
				cursor = "&cursor=" + *p.Meta.NextCursor
			}
			if got != want {
				t.Errorf("%d invoices are %s, want %d", got, status, want)
			}
		}
		if p := e.list("external_id=status-0&status=queued"); len(p.Data) != 1 {
			t.Errorf("both filters: %d", len(p.Data))
		}
		if p := e.list("external_id=status-0&status=rejected"); len(p.Data) != 0 {
			t.Errorf("both filters: %d", len(p.Data))
		}
		if p := e.list(""); len(p.Data) != 25 || p.Meta.NextCursor == nil {
			t.Errorf("a page has %d by default", len(p.Data))
		}
		// A full page without a successor has no cursor.
		if p := e.list("status=queued&limit=5"); len(p.Data) != 5 || p.Meta.NextCursor != nil {
			t.Errorf("%d and a cursor %v", len(p.Data), p.Meta.NextCursor)
		}
	})
}

func TestCursorsOfAnotherListAreRefused(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		master := filepath.Join(t.TempDir(), "master.key")
		e := newEnv(t, address, envOptions{masterKey: master})
		e.storeInvoices("x", 10, accepted)
		first := e.list("limit=3&status=accepted")
		cursor := *first.Meta.NextCursor
		if len(cursor) > 500 {
			t.Fatalf("a cursor of %d characters", len(cursor))
		}
		refused := func(e *env, name, query string) {
			t.Helper()
			a := e.send(request{path: "invoices?" + query})
			wantCode(t, name, a, http.StatusBadRequest, "bad_request")
			if got := problemsOf(t, a); !slices.Equal(got, []string{"cursor invalid_cursor"}) {
				t.Errorf("%s: details %q", name, got)
			}
		}
		second := e.list("status=accepted&limit=100&cursor=" + cursor)
		if len(second.Data) != 7 || second.Data[0].ID >= first.Data[2].ID {
			t.Fatalf("the next page: %+v", second)
		}
		for i := range len(cursor) {
			other := byte('A')
			if cursor[i] == other {
				other = 'B'
			}
			refused(e, fmt.Sprintf("character %d changed", i), "status=accepted&cursor="+cursor[:i]+string(other)+cursor[i+1:])
			if i > 0 && i%5 == 0 {
				refused(e, fmt.Sprintf("cut at %d", i), "status=accepted&cursor="+cursor[:i])
			}
		}
		refused(e, "one more character", "status=accepted&cursor="+cursor+"A")
		refused(e, "padding", "status=accepted&cursor="+cursor+"%3D%3D")
		refused(e, "twice", "status=accepted&cursor="+cursor+cursor)
		refused(e, "without its filter", "cursor="+cursor)
		refused(e, "with another filter", "status=rejected&cursor="+cursor)
		refused(e, "with a filter more", "status=accepted&external_id=x-1&cursor="+cursor)

		other := *e
		other.taxpayer = e.newTaxpayer()
		other.key = e.newKey(other.taxpayer, e.opt.environment, apikey.AllScopes()...)
		refused(&other, "another taxpayer", "status=accepted&cursor="+cursor)
		elsewhere := newNode(t, address, envOptions{environment: fiscal.Certification, plan: pipeline.Sandbox{}, masterKey: master})
		elsewhere.taxpayer = e.taxpayer
		elsewhere.key = elsewhere.newKey(e.taxpayer, fiscal.Certification, apikey.AllScopes()...)
		refused(elsewhere, "another environment", "status=accepted&cursor="+cursor)
		// Another node of the same environment accepts the cursor.
		twin := newNode(t, address, envOptions{masterKey: master})
		twin.taxpayer, twin.key = e.taxpayer, e.key
		if p := twin.list("status=accepted&cursor=" + cursor); len(p.Data) != 7 {
			t.Errorf("another node: %d", len(p.Data))
		}
	})
}
