package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// wantReplay asserts that an answer is the stored one of an earlier creation.
func wantReplay(t *testing.T, name string, first, again answer) {
	t.Helper()
	switch {
	case again.status != http.StatusAccepted || again.header.Get("Idempotency-Replayed") != "true":
		t.Errorf("%s: want a replay, got %s", name, again)
	case !bytes.Equal(first.body, again.body):
		t.Errorf("%s: the replay differs\nfirst %s\nagain %s", name, first.body, again.body)
	case again.header.Get("Location") != first.header.Get("Location"):
		t.Errorf("%s: Location was %q and is %q", name, first.header.Get("Location"), again.header.Get("Location"))
	case again.header.Get("Content-Type") != first.header.Get("Content-Type"):
		t.Errorf("%s: Content-Type was %q and is %q", name, first.header.Get("Content-Type"), again.header.Get("Content-Type"))
	case again.header.Get("X-Request-Id") == first.header.Get("X-Request-Id"):
		t.Errorf("%s: both exchanges have the id %s", name, again.header.Get("X-Request-Id"))
	}
}

func wantCode(t *testing.T, name string, a answer, status int, code string) {
	t.Helper()
	if a.status != status || a.code() != code {
		t.Errorf("%s: want %d %s, got %s", name, status, code, a)
	}
}

func TestP41ReplayIsByteForByte(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		first := w.create("k", body("A-1"))
		inv := w.created(first)
		if first.header.Get("Idempotency-Replayed") != "" {
			t.Error("the first answer says that it is a replay")
		}
		if want := "/v1/taxpayers/" + w.taxpayer + "/invoices/" + inv.ID; first.header.Get("Location") != want {
			t.Errorf("Location is %q, want %q", first.header.Get("Location"), want)
		}
		w.clock.advance(time.Hour)
		for range 3 {
			wantReplay(t, "later", first, w.create("k", body("A-1")))
		}
		wantCode(t, "another letter case is another key", w.create("K", body("A-1")), http.StatusConflict, "external_id_conflict")
		if n := w.stored(9); n != 1 {
			t.Errorf("%d invoices", n)
		}
	})
}

// backwards writes JSON with the members of every object in falling order.
func backwards(v any) []byte {
	var b bytes.Buffer
	switch v := v.(type) {
	case map[string]any:
		names := slices.Sorted(maps.Keys(v))
		slices.Reverse(names)
		b.WriteByte('{')
		for i, name := range names {
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(backwards(name))
			b.WriteByte(':')
			b.Write(backwards(v[name]))
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(backwards(item))
		}
		b.WriteByte(']')
	default:
		text, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		b.Write(text)
	}
	return b.Bytes()
}

func TestP42OtherSpellingsOfTheSameRequest(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		v := invoice("S-1")
		full(v)
		plain := body("S-1", full)
		first := w.create("k", plain)
		w.created(first)
		var indented bytes.Buffer
		w.must(json.Indent(&indented, plain, " \t", "\t  "))
		for name, spelling := range map[string][]byte{
			"members in another order":     backwards(v),
			"other white space":            append([]byte("\r\n\t "), append(indented.Bytes(), " \n"...)...),
			"letters as escapes":           bytes.ReplaceAll(plain, []byte("é"), []byte(`\u00e9`)),
			"escapes in upper case":        bytes.ReplaceAll(plain, []byte("é"), []byte(`\u00E9`)),
			"ASCII as escapes":             bytes.ReplaceAll(plain, []byte(`"DOP"`), []byte(`"\u0044\u004fP"`)),
			"an escape in a name":          bytes.ReplaceAll(plain, []byte(`"notes"`), []byte(`"n\u006ftes"`)),
			"an escape in another name":    bytes.ReplaceAll(plain, []byte(`"currency"`), []byte(`"c\u0075rrency"`)),
			"numbers with a fraction":      bytes.ReplaceAll(plain, []byte(`"billing_indicator":1`), []byte(`"billing_indicator":1.0`)),
			"numbers with an exponent":     bytes.ReplaceAll(plain, []byte(`"unit_code":43`), []byte(`"unit_code":4.3e+1`)),
			"numbers with a sign in it":    bytes.ReplaceAll(plain, []byte(`"unit_code":43`), []byte(`"unit_code":430E-1`)),
			"all of it at the same time":   bytes.ReplaceAll(backwards(v), []byte(":"), []byte(" :\n")),
			"the very same bytes, at last": plain,
		} {
			if name != "the very same bytes, at last" && bytes.Equal(spelling, plain) {
				t.Errorf("%s: the spelling is the same", name)
			}
			wantReplay(t, name, first, w.create("k", spelling))
		}
	})
}

// What differs in meaning, or might, is another request: the key is refused
// and nothing is written.
func TestP43AnotherRequestUnderTheKey(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		twoTaxes := func(v map[string]any) {
			set("lines.0.taxes", []any{
				map[string]any{"code": "ITBIS", "label": "ITBIS", "rate_percent": "18"},
				map[string]any{"code": "001", "label": "Propina", "rate_percent": "10"},
			})(v)
		}
		totals := set("declared_totals", map[string]any{"subtotal": "500.00", "discount_total": "0.00", "tax_total": "140.00", "total": "640.00"})
		base := func(change ...func(map[string]any)) []byte {
			return body("M-1", append([]func(map[string]any){twoTaxes, totals, set("notes", "caf\u00e9")}, change...)...)
		}
		first := w.create("k", base())
		w.created(first)
		swapped := func(v map[string]any) {
			taxes := v["lines"].([]any)[0].(map[string]any)["taxes"].([]any)
			slices.Reverse(taxes)
		}
		for name, other := range map[string][]byte{
			"one character of a value":         base(set("lines.0.description", "Café molidO")),
			"another external id":              base(set("external_id", "M-2")),
			"another scale of a decimal":       base(set("lines.0.quantity", "2.0")),
			"null in place of nothing":         base(set("due_date", nil)),
			"composed and decomposed letters":  base(set("notes", "cafe\u0301")),
			"the order of an array":            base(swapped),
			"a space at the end":               base(set("notes", "café ")),
			"a body that is not even valid":    base(set("lines", []any{})),
			"a body that is another's type":    []byte(`[]`),
			"an empty object":                  []byte(`{}`),
			"a member more that is not known":  base(set("extra", 1)),
			"the number that looks like it":    base(set("lines.0.quantity", 2)),
			"another letter case of a literal": base(set("currency", "dop")),
		} {
			wantCode(t, name, w.create("k", other), http.StatusConflict, "idempotency_mismatch")
		}
		wantCode(t, "what is no JSON has no meaning to compare", w.create("k", []byte(`{`)), http.StatusBadRequest, "invalid_json")
		if n := w.stored(9); n != 1 {
			t.Errorf("%d invoices", n)
		}
		wantReplay(t, "the first request is still known", first, w.create("k", base()))
	})
}

// A repetition never becomes a second invoice, however late it comes and
// whatever was restarted.
func TestP46ReplayAfterAYearAndARestart(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		opt := options{clock: newClock(), masterKey: filepath.Join(t.TempDir(), "master.key")}
		var first answer
		var taxpayer, key string
		t.Run("before the restart", func(t *testing.T) {
			w := start(t, address, opt)
			taxpayer, key = w.taxpayer, w.key
			first = w.create("k", body("R-1"))
			w.created(first)
			w.clock.advance(29 * 24 * time.Hour)
			wantReplay(t, "after 29 days", first, w.create("k", body("R-1")))
		})
		t.Run("after it", func(t *testing.T) {
			w := node(t, address, opt)
			w.taxpayer, w.key = taxpayer, key
			w.clock.advance(2 * 24 * time.Hour)
			wantReplay(t, "after 31 days", first, w.create("k", body("R-1")))
			w.clock.advance(369 * 24 * time.Hour)
			wantReplay(t, "after 400 days", first, w.create("k", body("R-1")))
			wantCode(t, "another body after 400 days", w.create("k", body("R-2")), http.StatusConflict, "idempotency_mismatch")
			wantCode(t, "another key after 400 days", w.create("k2", body("R-1")), http.StatusConflict, "external_id_conflict")
			if n := w.stored(9); n != 1 {
				t.Errorf("%d invoices", n)
			}
		})
	})
}

func TestP47CorrectedBodyUnderTheSameKey(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		wantInvalid(t, "wrong", w.create("k", body("V-1", set("currency", "USD"))), "currency invalid_enum")
		a := w.create("k", body("V-1"))
		w.created(a)
		if a.header.Get("Idempotency-Replayed") != "" {
			t.Error("a failed validation was remembered")
		}
	})
}

func TestP49ReplayShowsWhatWasAnswered(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		post := request{method: http.MethodPost, path: "invoices", idem: "k", body: body("Q-1"), header: scenarioHeader("accepted")}
		first := w.send(post)
		inv := w.created(first)
		if inv.Status != "queued" {
			t.Fatalf("the scenario starts %s", inv.Status)
		}
		for _, status := range []string{"submitted", "processing", "accepted"} {
			w.second()
			w.awaitStatus(inv.ID, status)
			wantReplay(t, "while "+status, first, w.send(post))
		}
	})
}

func TestP50ExternalIDsAreNeverFreed(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		inv := w.created(w.create("k1", body("Ext-1")))
		location := "/v1/taxpayers/" + w.taxpayer + "/invoices/" + inv.ID
		writer := w.newKey(w.taxpayer, w.opt.env, apikey.InvoicesWrite, apikey.ECFSubmit)
		for name, b := range map[string][]byte{"same body": body("Ext-1"), "other body": body("Ext-1", credit)} {
			a := w.create("k2", b)
			wantCode(t, name, a, http.StatusConflict, "external_id_conflict")
			if got := problemsOf(t, a); !slices.Equal(got, []string{"external_id already_exists"}) {
				t.Errorf("%s: details %q", name, got)
			}
			if a.header.Get("Location") != location {
				t.Errorf("%s: Location is %q, want %q", name, a.header.Get("Location"), location)
			}
			a = w.send(request{method: http.MethodPost, path: "invoices", idem: "k2", body: b, key: writer})
			wantCode(t, name, a, http.StatusConflict, "external_id_conflict")
			if a.header.Get("Location") != "" {
				t.Errorf("%s: a credential that may not read is told %q", name, a.header.Get("Location"))
			}
		}
		// The refused key is free, and near misses are other identifiers.
		w.created(w.create("k2", body("Ext-1 ")))
		for i, other := range []string{"ext-1", " Ext-1", "Ext-1\u200b", "E\u0301", "\u00c9", "Ｅxt-1", "Ext-1%"} {
			w.created(w.create("near"+string(rune('a'+i)), body(other)))
		}
		// Neither a rejection nor a failed validation gives an identifier back.
		for _, s := range []string{"rejected", "validation_failed"} {
			inv := w.created(w.send(request{method: http.MethodPost, path: "invoices", idem: s, body: body(s), header: scenarioHeader(s)}))
			w.walk(inv.ID, s)
			wantCode(t, s, w.create(s+" again", body(s)), http.StatusConflict, "external_id_conflict")
		}
	})
}

func TestP52RotatedCredentialBetweenAttempts(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		first := w.create("k", body("C-1"))
		w.created(first)
		all, err := w.store.Credentials(t.Context())
		w.must(err)
		fresh, _, err := w.credentials().Rotate(t.Context(), all[0].ID, 0)
		w.must(err)
		w.clock.advance(6 * time.Second) // what is remembered of a credential is forgotten by then
		wantCode(t, "the old key", w.create("k", body("C-1")), http.StatusUnauthorized, "unauthorized")
		w.key = fresh.Reveal()
		wantReplay(t, "the new key", first, w.create("k", body("C-1")))
		// A stored answer is for those who may create.
		reader := w.newKey(w.taxpayer, w.opt.env, apikey.InvoicesRead, apikey.InvoicesWrite)
		wantCode(t, "a credential without the scopes", w.send(request{method: http.MethodPost, path: "invoices", idem: "k", body: body("C-1"), key: reader}),
			http.StatusForbidden, "forbidden")
	})
}

func TestP53TaxpayersAndEnvironmentsAreApart(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		master := filepath.Join(t.TempDir(), "master.key")
		w := start(t, address, options{masterKey: master})
		other := *w
		other.taxpayer = w.newTaxpayer()
		other.key = w.newKey(other.taxpayer, w.opt.env, apikey.AllScopes()...)
		// The other environment plays the sandbox, because no taxpayer is ready
		// for the real one yet.
		elsewhere := node(t, address, options{env: fiscal.Certification, plan: pipeline.Sandbox{}, masterKey: master})
		elsewhere.taxpayer = w.taxpayer
		elsewhere.key = elsewhere.newKey(w.taxpayer, fiscal.Certification, apikey.AllScopes()...)

		ids := map[string]bool{}
		for _, place := range []*world{w, &other, elsewhere} {
			a := place.create("k", body("same"))
			ids[place.created(a).ID] = true
			if a.header.Get("Idempotency-Replayed") != "" {
				t.Errorf("a replay across the border: %s", a)
			}
			wantReplay(t, "within", a, place.create("k", body("same")))
			wantCode(t, "within", place.create("k", body("else")), http.StatusConflict, "idempotency_mismatch")
		}
		if len(ids) != 3 {
			t.Errorf("three creations made %d invoices", len(ids))
		}
	})
}

// refusing is a plan under which nothing is accepted any more.
type refusing struct{ pipeline.Sandbox }

func (refusing) Check(context.Context, store.Scope, *fiscal.Invoice) error {
	return fiscal.Problems{{Field: "issue_date", Code: fiscal.CodeOutOfRange, Message: "the window has passed"}}
}

func TestP57ReplayUnderStricterRules(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		opt := options{env: fiscal.Certification, plan: pipeline.Sandbox{}, masterKey: filepath.Join(t.TempDir(), "master.key")}
		w := start(t, address, opt)
		first := w.create("k", body("S-1"))
		w.created(first)
		for name, plan := range map[string]pipeline.Plan{
			"stricter rules": refusing{}, "no certificate": registering(t, w.store, w.opt),
		} {
			opt.plan = plan
			later := node(t, address, opt)
			later.taxpayer, later.key = w.taxpayer, w.key
			wantReplay(t, name, first, later.create("k", body("S-1")))
			wantCode(t, name, later.create("k", body("S-2")), http.StatusConflict, "idempotency_mismatch")
			if a := later.create("new", body("S-2")); a.status == http.StatusAccepted {
				t.Errorf("%s: a new invoice gets %s", name, a)
			}
		}
	})
}

// All that is missing is told at once, and nothing of it is kept under the key.
func TestP58ReadinessIsNotRemembered(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		opt := options{env: fiscal.Production, masterKey: filepath.Join(t.TempDir(), "master.key")}
		w := start(t, address, opt)
		ctx := t.Context()
		taxpayer, err := w.store.Taxpayer(ctx, w.taxpayer)
		w.must(err)
		want := []string{"certificate certificate.missing", "sequence sequence.missing"}
		for _, home := range []string{"", "Av. Inventada 1"} {
			taxpayer.Address = home
			w.must(w.store.Update(ctx, func(tx *store.Tx) error { return tx.UpdateTaxpayer(ctx, taxpayer) }))
			a := w.create("k", body("R-1"))
			wantCode(t, "not ready", a, http.StatusConflict, "operational_readiness_failed")
			expected := want
			if home == "" {
				expected = append([]string{"taxpayer taxpayer.profile_incomplete"}, want...)
			}
			if got := problemsOf(t, a); !slices.Equal(got, expected) {
				t.Errorf("address %q: details %q, want %q", home, got, expected)
			}
			if _, err := w.store.Answer(ctx, w.scope(), pipeline.CreateInvoice, "k"); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("something is stored under the key: %v", err)
			}
		}
		if n := w.stored(1); n != 0 {
			t.Errorf("%d invoices", n)
		}
		opt.plan = pipeline.Sandbox{} // everything has been repaired
		ready := node(t, address, opt)
		ready.taxpayer, ready.key = w.taxpayer, w.key
		a := ready.create("k", body("R-1"))
		ready.created(a)
		if a.header.Get("Idempotency-Replayed") != "" {
			t.Error("the refusal was remembered")
		}
	})
}

func TestP59IdempotencyKeys(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		long := strings.Repeat("k", 200)
		for _, tt := range []struct {
			name  string
			lines []string
			want  string
		}{
			{"absent", nil, "required"},
			{"empty", []string{""}, "required"},
			{"only blanks", []string{" \t "}, "required"},
			{"201 bytes", []string{long + "k"}, "too_long"},
			{"two lines", []string{"a", "b"}, "duplicated"},
			{"two equal lines", []string{"a", "a"}, "duplicated"},
			{"a letter beyond ASCII", []string{"é"}, "invalid_characters"},
			{"a byte that is no UTF-8", []string{"a\xff"}, "invalid_characters"},
			{"a tab inside", []string{"a\tb"}, "invalid_characters"},
		} {
			a := w.send(request{method: http.MethodPost, path: "invoices", header: http.Header{"Idempotency-Key": tt.lines}, body: body("K")})
			wantCode(t, tt.name, a, http.StatusBadRequest, "bad_request")
			if got := problemsOf(t, a); !slices.Equal(got, []string{"Idempotency-Key " + tt.want}) {
				t.Errorf("%s: details %q, want %s", tt.name, got, tt.want)
			}
		}
		if n := w.stored(1); n != 0 {
			t.Fatalf("%d invoices", n)
		}
		for i, key := range []string{long, "a b", `"quoted"`, "!~", "'; --", "k=v,w"} {
			id := "K" + string(rune('0'+i))
			first := w.create(key, body(id))
			w.created(first)
			wantReplay(t, key, first, w.create(key, body(id)))
		}
	})
}

// Credentials that expire do not take their answers with them.
func TestReplayWithAnotherCredentialOfTheTaxpayer(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		short, _, err := w.credentials().Issue(t.Context(), access.Terms{
			TaxpayerID: w.taxpayer, Environment: w.opt.env, Scopes: apikey.AllScopes(), ExpiresAt: w.clock.now().Add(time.Minute),
		})
		w.must(err)
		post := request{method: http.MethodPost, path: "invoices", idem: "k", body: body("X-1"), key: short.Reveal()}
		first := w.send(post)
		w.created(first)
		w.clock.advance(time.Minute)
		wantCode(t, "expired", w.send(post), http.StatusUnauthorized, "unauthorized")
		wantReplay(t, "another credential", first, w.create("k", body("X-1")))
	})
}
