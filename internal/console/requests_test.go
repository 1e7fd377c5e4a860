package console

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store"
)

// logRequests stores requests of a taxpayer; each third one was refused.
func (e *env) logRequests(taxpayer string, count int) {
	e.t.Helper()
	var all []store.LoggedRequest
	for i := range count {
		q := store.LoggedRequest{
			Scope: store.Scope{Environment: e.o.Environment, TaxpayerID: taxpayer}, RequestID: requestIDOf(taxpayer, i),
			At: e.clock.Now().Add(-time.Duration(i) * time.Second), Method: "POST", Route: "/v1/taxpayers/{taxpayer_id}/invoices",
			Path: "/v1/taxpayers/" + taxpayer + "/invoices", Status: 202, Credential: "csc5jbcyw2ae", Took: 3400 * time.Microsecond, Replayed: i%10 == 1,
		}
		if i%3 == 2 {
			q.Status, q.Code = 422, "validation_error"
			q.Details = []store.RequestDetail{{Code: "required", Field: "buyer.tax_id"}, {Code: "invalid_decimal", Field: "lines.0.unit_price"}}
		}
		all = append(all, q)
	}
	e.must(e.o.Store.LogRequests(e.t.Context(), all))
}

// The log shows requests page by page with filters, groups errors, and explains each of
// them. Requests of other taxpayers do not exist.
func TestTheLogOfRequests(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	other := e.addTaxpayer("199000021", "Otra, SRL")
	e.logRequests(e.taxpayer, 60)
	e.logRequests(other, 3)
	developer, _ := e.signedIn(store.RoleDeveloper, e.taxpayer)
	operator, _ := e.signedIn(store.RoleOperator)
	rows := func(a answer) int { return strings.Count(a.body, `<th scope="row" class="nowrap plain">`) }
	first := developer.get("/console/requests")
	if rows(first) != requestRows || !strings.Contains(first.body, ">20</") || strings.Contains(first.body, other) {
		t.Errorf("%d rows", rows(first))
	}
	_, older, _ := strings.Cut(first.body, `<a class="button" href="/console/requests?before=`)
	older, _, _ = strings.Cut(older, `"`)
	if got := rows(developer.get("/console/requests?before=" + older)); got != 10 {
		t.Errorf("the second page has %d rows", got)
	}
	for query, want := range map[string]int{
		"status=error": 20, "status=2xx": 40, "status=5xx": 0, "code=validation_error": 20, "code=forbidden": 0, "credential=csc5jbcyw2ae": 50,
		"credential=other": 0, "from=2026-11-15&to=2026-11-15": 50, "from=2026-11-16": 0,
	} {
		if got := developer.get("/console/requests?" + query); rows(got) != want || got.StatusCode != http.StatusOK {
			t.Errorf("%s: %d rows, want %d", query, rows(got), want)
		}
	}
	wantAnswer(t, "a wrong date", developer.get("/console/requests?from=ayer"), http.StatusUnprocessableEntity)
	if got := rows(operator.get("/console/requests?taxpayer=" + other)); got != 3 {
		t.Errorf("an operator sees %d requests of the other taxpayer", got)
	}
	if got := developer.get("/console/requests?taxpayer=" + other); got.StatusCode != http.StatusNotFound {
		t.Errorf("a developer gets %d for another taxpayer", got.StatusCode)
	}
	refused := requestIDOf(e.taxpayer, 2)
	if got := developer.get("/console/requests?q=" + refused); got.Header.Get("Location") != "/console/requests/"+refused {
		t.Errorf("a search by id answers %d %s", got.StatusCode, got.Header.Get("Location"))
	}
	for _, unknown := range []string{"req_unknown", requestIDOf(other, 0)} {
		got := developer.get("/console/requests?q=" + unknown)
		if got.StatusCode != http.StatusOK || rows(got) != 0 || !strings.Contains(got.body, `value="`+unknown+`"`) || !strings.Contains(got.body, "Compruebe el identificador") {
			t.Errorf("a search for an unknown id answers %d, loses the search or has rows", got.StatusCode)
		}
	}
	got := developer.get("/console/requests/" + refused)
	for _, want := range []string{"lines.0.unit_price", "invalid_decimal", "Corrija los campos", "3.4\u00a0ms", "csc5jbcyw2ae"} {
		if !strings.Contains(got.body, want) {
			t.Errorf("the page of the request does not show %s", want)
		}
	}
	stranger, _ := e.signedIn(store.RoleDeveloper, other)
	wantAnswer(t, "a developer of another taxpayer", stranger.get("/console/requests/"+refused), http.StatusNotFound)
}

// requestIDOf returns the id of a request of logRequests.
func requestIDOf(taxpayer string, i int) string {
	return fmt.Sprintf("req_%s%024d", taxpayer[len(taxpayer)-8:], i)
}
