package api_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/rejection"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// in returns a request that asks for a language.
func (r request) in(acceptLanguage string) request {
	r.header = r.header.Clone()
	if r.header == nil {
		r.header = http.Header{}
	}
	r.header.Set("Accept-Language", acceptLanguage)
	return r
}

// errorTexts returns the texts of an error, and what programs decide by.
func (a response) errorTexts(t *testing.T) (texts, facts []string) {
	t.Helper()
	var e struct {
		Error struct {
			Code, Message string
			Details       []detail
		}
	}
	if err := json.Unmarshal(a.body, &e); err != nil || e.Error.Message == "" {
		t.Fatalf("%v in %s", err, a)
	}
	texts, facts = []string{e.Error.Message}, []string{e.Error.Code}
	for _, d := range e.Error.Details {
		texts, facts = append(texts, d.Message), append(facts, d.Field, d.Code)
	}
	return texts, facts
}

// refusedRequests returns requests that the service refuses, one for each error of a
// sandbox that needs no failure.
func refusedRequests() map[string]request {
	post := func(body string) request {
		return request{method: http.MethodPost, path: "invoices", idem: "refused", body: []byte(body)}
	}
	wrong := invoiceBody("wrong", func(v map[string]any) {
		v["issue_date"], v["currency"], v["notes"], v["lines"], v["extrenal_id"] = "2026-02-30", "USD", 7, []any{}, "x"
		v["declared_totals"] = map[string]any{"subtotal": "1.0.0", "total": 3}
	})
	totals := invoiceBody("totals", func(v map[string]any) {
		v["declared_totals"] = map[string]any{"subtotal": "400.00", "discount_total": "1.00", "tax_total": "9.00", "total": "59.00"}
	})
	return map[string]request{
		"no credential":      {path: "invoices", key: "-"},
		"wrong credential":   {path: "invoices", key: "fh_x_y"},
		"no such path":       {path: "nothing"},
		"wrong method":       {method: http.MethodDelete, path: "invoices"},
		"wrong taxpayer":     {path: "/v1/taxpayers/x/invoices"},
		"wrong parameters":   {path: "invoices?staus=x&limit=0&cursor=z"},
		"missing parameter":  {path: "fiscal-documents"},
		"no such invoice":    {path: "invoices/0195d3a2-7c1e-7b40-9f15-3a6c2e8d4b01"},
		"no idempotency key": {method: http.MethodPost, path: "invoices", body: invoiceBody("k")},
		"no JSON":            post(`{"a" 1}`),
		"empty body":         post(``),
		"repeated member":    post(`{"a":1,"a":2}`),
		"no object":          post(`[]`),
		"wrong invoice":      post(string(wrong)),
		"wrong totals":       post(string(totals)),
		"wrong scenario":     {method: http.MethodPost, path: "invoices", idem: "s", body: invoiceBody("s"), header: scenarioHeader("nothing")},
		"webhooks":           {path: "webhook-endpoints"},
	}
}

func TestMessagesFollowAcceptLanguage(t *testing.T) {
	oneEngine(t, envOptions{}, func(t *testing.T, e *env) {
		e.created(e.create("first", invoiceBody("taken")))
		requests := refusedRequests()
		requests["known external id"] = request{method: http.MethodPost, path: "invoices", idem: "second", body: invoiceBody("taken")}
		requests["known key"] = request{method: http.MethodPost, path: "invoices", idem: "first", body: invoiceBody("other")}
		for name, r := range requests {
			english := e.send(r)
			texts, facts := english.errorTexts(t)
			wantLanguage(t, name, english, "en")
			for _, accepted := range []string{"es", "es-DO", "fr, es;q=0.5, en;q=0.1"} {
				spanish := e.send(r.in(accepted))
				translated, same := spanish.errorTexts(t)
				wantLanguage(t, name, spanish, "es")
				if diff := cmp.Diff(facts, same); diff != "" || spanish.status != english.status {
					t.Errorf("%s: status %d became %d, or codes changed:\n%s", name, english.status, spanish.status, diff)
				}
				for i := range translated {
					if translated[i] == texts[i] {
						t.Errorf("%s: %q has no translation", name, texts[i])
					}
				}
				if diff := cmp.Diff(stableHeaders(english), stableHeaders(spanish)); diff != "" {
					t.Errorf("%s: headers: %s", name, diff)
				}
			}
		}
	})
}

func wantLanguage(t *testing.T, name string, a response, language string) {
	t.Helper()
	if a.header.Get("Content-Language") != language || a.header.Get("Vary") != "Accept-Language" {
		t.Errorf("%s: Content-Language %q, Vary %q, want %s", name, a.header.Get("Content-Language"), a.header.Get("Vary"), language)
	}
}

// stableHeaders returns the headers that do not depend on the time and the language.
func stableHeaders(a response) http.Header {
	h := a.header.Clone()
	for _, name := range []string{"Date", "X-Request-Id", "Content-Length", "Content-Language", "Ratelimit-Remaining", "RateLimit-Remaining"} {
		h.Del(name)
	}
	delete(h, "RateLimit-Remaining")
	return h
}

// A replayed answer is the stored bytes, and the notes of a document stay in the
// language of the request that created it.
func TestLanguageOfWhatIsStored(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		r := request{method: http.MethodPost, path: "invoices", idem: "k", body: invoiceBody("x")}
		first := e.send(r.in("es"))
		made := e.created(first)
		for _, language := range []string{"es", "en"} {
			again := e.send(r.in(language))
			if string(again.body) != string(first.body) || again.header.Get("Idempotency-Replayed") != "true" {
				t.Errorf("%s: the replay is %s, want %s", language, again, first)
			}
			notes := e.documentIn(made.FiscalDocumentID, language)
			if len(notes) != 1 || !strings.HasPrefix(notes[0], "Resultado sintético") {
				t.Errorf("%s: notes %q", language, notes)
			}
		}
		other := e.created(e.create("k2", invoiceBody("y")))
		if notes := e.documentIn(other.FiscalDocumentID, "es"); len(notes) != 1 || !strings.HasPrefix(notes[0], "Synthetic result") {
			t.Errorf("notes %q", notes)
		}
	})
}

// documentIn reads the status messages of a document in a language.
func (e *env) documentIn(id, language string) []string {
	e.t.Helper()
	a := e.send(request{path: "fiscal-documents/" + id}.in(language))
	wantLanguage(e.t, "document", a, language)
	var d struct {
		StatusMessages []string `json:"status_messages"`
	}
	a.data(e.t, &d)
	return d.StatusMessages
}

// The words of the authority come first, then the explanation of every code in the
// language of the reader, then the notes of the service.
func TestCodesOfTheAuthorityAreExplained(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		made := e.created(e.create("k", invoiceBody("x")))
		words := []string{"[7777] desconocido"}
		for _, code := range rejection.Codes() {
			words = append(words, "["+code+"] palabras de la DGII")
		}
		e.must(e.store.Update(t.Context(), func(tx *store.Tx) error {
			before, err := tx.InvoiceOfDocument(t.Context(), store.Scope{Environment: fiscal.Sandbox, TaxpayerID: e.taxpayer}, made.FiscalDocumentID)
			if err != nil {
				return err
			}
			after := before
			after.Status, after.Messages, after.Revision = fiscal.Rejected, append(slices.Clone(words), "a note"), before.Revision+1
			after.UpdatedAt = before.UpdatedAt.Add(1)
			return tx.Do(t.Context(), new(store.Batch).UpdateInvoice(before, after))
		}))
		for _, language := range []lang.Language{lang.English, lang.Spanish} {
			want := slices.Clone(words)
			for _, code := range rejection.Codes() {
				note, _ := rejection.Note(code, language)
				want = append(want, note)
			}
			if diff := cmp.Diff(append(want, "a note"), e.documentIn(made.FiscalDocumentID, string(language))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", language, diff)
			}
		}
	})
}

// The answer to a misspelt member names the member that was meant, at every place of a
// request.
func TestMisspeltMembersAreSuggested(t *testing.T) {
	oneEngine(t, envOptions{}, func(t *testing.T, e *env) {
		body := invoiceBody("x", asFiscalCredit, func(v map[string]any) {
			v["External_id"], v["isue_date"], v["buyer"].(map[string]any)["taxId"] = 1, 1, 1
			v["buyer"].(map[string]any)["address"] = map[string]any{"line1": "x", "city": "y", "country_code": "DO", "postal_cdoe": 1}
			line := v["lines"].([]any)[0].(map[string]any)
			line["unit-price"], line["taxes"].([]any)[0].(map[string]any)["rate_percents"] = 1, 1
			line["discount"] = map[string]any{"kind": "percentage", "value": "0", "valeu": 1}
			v["declared_totals"].(map[string]any)["subtotals"] = 1
			v["estimated_withholdings"] = map[string]any{"income_tax_amount": "0", "itbis_amount": "0", "itbis_amuont": 1}
			v["nothing_like_it"] = 1
		})
		got := map[string]string{}
		for _, d := range e.send(request{method: http.MethodPost, path: "invoices", idem: "k", body: body}.in("es")).details(t) {
			if d.Code != fiscal.CodeUnknownField {
				continue
			}
			_, meant, _ := strings.Cut(d.Message, "¿quiso decir ")
			got[d.Field], _, _ = strings.Cut(meant, "?")
		}
		want := map[string]string{
			"External_id": "external_id", "isue_date": "issue_date", "buyer.taxId": "tax_id", "buyer.address.postal_cdoe": "postal_code",
			"lines.0.unit-price": "unit_price", "lines.0.taxes.0.rate_percents": "rate_percent", "lines.0.discount.valeu": "value",
			"declared_totals.subtotals": "subtotal", "estimated_withholdings.itbis_amuont": "itbis_amount", "nothing_like_it": "",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		misspelt := e.send(request{path: "invoices?external-id=x"})
		if d := misspelt.details(t); len(d) != 1 || !strings.Contains(d[0].Message, "did you mean external_id?") {
			t.Errorf("a misspelt parameter: %s", misspelt)
		}
	})
}
