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
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

// wantReplay checks that an answer is the stored answer of an earlier creation.
func wantReplay(t *testing.T, name string, first, again response) {
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

func wantStatus(t *testing.T, name string, a response, status int) {
	t.Helper()
	if a.status != status {
		t.Errorf("%s: want %d, got %s", name, status, a)
	}
}

func wantCode(t *testing.T, name string, a response, status int, code string) {
	t.Helper()
	if a.status != status || a.code() != code {
		t.Errorf("%s: want %d %s, got %s", name, status, code, a)
	}
}

func TestReplayReturnsTheStoredAnswer(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		first := e.create("k", invoiceBody("A-1"))
		inv := e.created(first)
		if first.header.Get("Idempotency-Replayed") != "" {
			t.Error("the first answer says that it is a replay")
		}
		if want := "/v1/taxpayers/" + e.taxpayer + "/invoices/" + inv.ID; first.header.Get("Location") != want {
			t.Errorf("Location is %q, want %q", first.header.Get("Location"), want)
		}
		e.clock.advance(time.Hour)
		for range 3 {
			wantReplay(t, "later", first, e.create("k", invoiceBody("A-1")))
		}
		wantCode(t, "another letter case is another key", e.create("K", invoiceBody("A-1")), http.StatusConflict, "external_id_conflict")
		if n := e.stored(9); n != 1 {
			t.Errorf("%d invoices", n)
		}
	})
}

// reverseMembers writes JSON with the members of every object in reverse order.
func reverseMembers(v any) []byte {
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
			b.Write(reverseMembers(name))
			b.WriteByte(':')
			b.Write(reverseMembers(v[name]))
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(reverseMembers(item))
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

func TestReplayIgnoresTheSpellingOfTheJSON(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		v := newInvoice("S-1")
		allFields(v)
		plain := invoiceBody("S-1", allFields)
		first := e.create("k", plain)
		e.created(first)
		var indented bytes.Buffer
		e.must(json.Indent(&indented, plain, " \t", "\t  "))
		for name, spelling := range map[string][]byte{
			"members in another order":         reverseMembers(v),
			"other white space":                append([]byte("\r\n\t "), append(indented.Bytes(), " \n"...)...),
			"letters as escapes":               bytes.ReplaceAll(plain, []byte("é"), []byte(`\u00e9`)),
			"escapes in upper case":            bytes.ReplaceAll(plain, []byte("é"), []byte(`\u00E9`)),
			"ASCII as escapes":                 bytes.ReplaceAll(plain, []byte(`"DOP"`), []byte(`"\u0044\u004fP"`)),
			"an escape in a name":              bytes.ReplaceAll(plain, []byte(`"notes"`), []byte(`"n\u006ftes"`)),
			"an escape in another name":        bytes.ReplaceAll(plain, []byte(`"currency"`), []byte(`"c\u0075rrency"`)),
			"numbers with a fraction":          bytes.ReplaceAll(plain, []byte(`"billing_indicator":1`), []byte(`"billing_indicator":1.0`)),
			"numbers with an exponent":         bytes.ReplaceAll(plain, []byte(`"unit_code":43`), []byte(`"unit_code":4.3e+1`)),
			"numbers with a negative exponent": bytes.ReplaceAll(plain, []byte(`"unit_code":43`), []byte(`"unit_code":430E-1`)),
			"several changes at the same time": bytes.ReplaceAll(reverseMembers(v), []byte(":"), []byte(" :\n")),
			"the same bytes":                   plain,
		} {
			if name != "the same bytes" && bytes.Equal(spelling, plain) {
				t.Errorf("%s: the spelling is the same", name)
			}
			wantReplay(t, name, first, e.create("k", spelling))
		}
	})
}

// A body with another meaning is another request: the key is refused and nothing
// is stored.
func TestAnotherRequestUnderAKnownKeyIsRefused(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		twoTaxes := func(v map[string]any) {
			setField("lines.0.taxes", []any{
				map[string]any{"code": "ITBIS", "label": "ITBIS", "rate_percent": "18"},
				map[string]any{"code": "001", "label": "Propina", "rate_percent": "10"},
			})(v)
		}
		totals := setField("declared_totals", map[string]any{"subtotal": "500.00", "discount_total": "0.00", "tax_total": "140.00", "total": "640.00"})
		base := func(change ...func(map[string]any)) []byte {
			return invoiceBody("M-1", append([]func(map[string]any){twoTaxes, totals, setField("notes", "caf\u00e9")}, change...)...)
		}
		first := e.create("k", base())
		e.created(first)
		swapped := func(v map[string]any) {
			taxes := v["lines"].([]any)[0].(map[string]any)["taxes"].([]any)
			slices.Reverse(taxes)
		}
		for name, other := range map[string][]byte{
			"one character of a value":         base(setField("lines.0.description", "Café molidO")),
			"another external id":              base(setField("external_id", "M-2")),
			"another scale of a decimal":       base(setField("lines.0.quantity", "2.0")),
			"null instead of an absent member": base(setField("due_date", nil)),
			"composed and decomposed letters":  base(setField("notes", "cafe\u0301")),
			"the order of an array":            base(swapped),
			"a space at the end":               base(setField("notes", "café ")),
			"a body that is not valid":         base(setField("lines", []any{})),
			"a body of another JSON type":      []byte(`[]`),
			"an empty object":                  []byte(`{}`),
			"an unknown member":                base(setField("extra", 1)),
			"a number instead of a string":     base(setField("lines.0.quantity", 2)),
			"another letter case of a literal": base(setField("currency", "dop")),
		} {
			wantCode(t, name, e.create("k", other), http.StatusConflict, "idempotency_mismatch")
		}
		wantCode(t, "a body that is not JSON", e.create("k", []byte(`{`)), http.StatusBadRequest, "invalid_json")
		if n := e.stored(9); n != 1 {
			t.Errorf("%d invoices", n)
		}
		wantReplay(t, "the first request is still known", first, e.create("k", base()))
	})
}

// A repeated request never creates a second invoice, even after a year and a
// restart.
func TestReplayAfterAYearAndARestart(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		opt := envOptions{clock: newClock(), masterKey: filepath.Join(t.TempDir(), "master.key")}
		var first response
		var taxpayer, key string
		t.Run("before the restart", func(t *testing.T) {
			e := newEnv(t, address, opt)
			taxpayer, key = e.taxpayer, e.key
			first = e.create("k", invoiceBody("R-1"))
			e.created(first)
			e.clock.advance(29 * 24 * time.Hour)
			wantReplay(t, "after 29 days", first, e.create("k", invoiceBody("R-1")))
		})
		t.Run("after it", func(t *testing.T) {
			e := newNode(t, address, opt)
			e.taxpayer, e.key = taxpayer, key
			e.clock.advance(2 * 24 * time.Hour)
			wantReplay(t, "after 31 days", first, e.create("k", invoiceBody("R-1")))
			e.clock.advance(369 * 24 * time.Hour)
			wantReplay(t, "after 400 days", first, e.create("k", invoiceBody("R-1")))
			wantCode(t, "another body after 400 days", e.create("k", invoiceBody("R-2")), http.StatusConflict, "idempotency_mismatch")
			wantCode(t, "another key after 400 days", e.create("k2", invoiceBody("R-1")), http.StatusConflict, "external_id_conflict")
			if n := e.stored(9); n != 1 {
				t.Errorf("%d invoices", n)
			}
		})
	})
}

func TestCorrectedBodyMayUseTheSameKey(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		wantInvalid(t, "wrong", e.create("k", invoiceBody("V-1", setField("currency", "USD"))), "currency invalid_enum")
		a := e.create("k", invoiceBody("V-1"))
		e.created(a)
		if a.header.Get("Idempotency-Replayed") != "" {
			t.Error("a failed validation is stored under the key")
		}
	})
}

func TestReplayDoesNotChangeWithTheStatus(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		post := request{method: http.MethodPost, path: "invoices", idem: "k", body: invoiceBody("Q-1"), header: scenarioHeader("accepted")}
		first := e.send(post)
		inv := e.created(first)
		if inv.Status != "queued" {
			t.Fatalf("the scenario starts %s", inv.Status)
		}
		for _, status := range []string{"submitted", "processing", "accepted"} {
			e.advanceSecond()
			e.awaitStatus(inv.ID, status)
			wantReplay(t, "while "+status, first, e.send(post))
		}
	})
}

func TestExternalIDsAreNeverFreed(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		inv := e.created(e.create("k1", invoiceBody("Ext-1")))
		location := "/v1/taxpayers/" + e.taxpayer + "/invoices/" + inv.ID
		writer := e.newKey(e.taxpayer, e.opt.environment, apikey.InvoicesWrite, apikey.ECFSubmit)
		for name, b := range map[string][]byte{"same body": invoiceBody("Ext-1"), "other body": invoiceBody("Ext-1", asFiscalCredit)} {
			a := e.create("k2", b)
			wantCode(t, name, a, http.StatusConflict, "external_id_conflict")
			if got := problemsOf(t, a); !slices.Equal(got, []string{"external_id already_exists"}) {
				t.Errorf("%s: details %q", name, got)
			}
			if a.header.Get("Location") != location {
				t.Errorf("%s: Location is %q, want %q", name, a.header.Get("Location"), location)
			}
			a = e.send(request{method: http.MethodPost, path: "invoices", idem: "k2", body: b, key: writer})
			wantCode(t, name, a, http.StatusConflict, "external_id_conflict")
			if a.header.Get("Location") != "" {
				t.Errorf("%s: a credential without the scope gets Location %q", name, a.header.Get("Location"))
			}
		}
		// The key of the refused request is free, and similar identifiers are different.
		e.created(e.create("k2", invoiceBody("Ext-1 ")))
		for i, other := range []string{"ext-1", " Ext-1", "Ext-1\u200b", "E\u0301", "\u00c9", "Ｅxt-1", "Ext-1%"} {
			e.created(e.create("near"+string(rune('a'+i)), invoiceBody(other)))
		}
		// A rejection or a failed validation does not free the identifier.
		for _, s := range []string{"rejected", "validation_failed"} {
			inv := e.created(e.send(request{method: http.MethodPost, path: "invoices", idem: s, body: invoiceBody(s), header: scenarioHeader(s)}))
			e.walkScenario(inv.ID, s)
			wantCode(t, s, e.create(s+" again", invoiceBody(s)), http.StatusConflict, "external_id_conflict")
		}
	})
}

func TestReplayAfterACredentialRotation(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		first := e.create("k", invoiceBody("C-1"))
		e.created(first)
		all, err := e.store.Credentials(t.Context())
		e.must(err)
		fresh, _, err := e.credentials().Rotate(t.Context(), all[0].ID, 0)
		e.must(err)
		e.clock.advance(6 * time.Second) // longer than a node caches a credential
		wantCode(t, "the old key", e.create("k", invoiceBody("C-1")), http.StatusUnauthorized, "unauthorized")
		e.key = fresh.Reveal()
		wantReplay(t, "the new key", first, e.create("k", invoiceBody("C-1")))
		// A replay needs the scopes of a creation.
		reader := e.newKey(e.taxpayer, e.opt.environment, apikey.InvoicesRead, apikey.InvoicesWrite)
		wantCode(t, "a credential without the scopes", e.send(request{method: http.MethodPost, path: "invoices", idem: "k", body: invoiceBody("C-1"), key: reader}),
			http.StatusForbidden, "forbidden")
	})
}

func TestKeysAreSeparateForEachTaxpayerAndEnvironment(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		master := filepath.Join(t.TempDir(), "master.key")
		e := newEnv(t, address, envOptions{masterKey: master})
		other := *e
		other.taxpayer = e.newTaxpayer()
		other.key = e.newKey(other.taxpayer, e.opt.environment, apikey.AllScopes()...)
		// The other environment uses the sandbox plan, which needs no readiness.
		elsewhere := newNode(t, address, envOptions{environment: fiscal.Certification, plan: pipeline.Sandbox{}, masterKey: master})
		elsewhere.taxpayer = e.taxpayer
		elsewhere.key = elsewhere.newKey(e.taxpayer, fiscal.Certification, apikey.AllScopes()...)

		ids := map[string]bool{}
		for _, node := range []*env{e, &other, elsewhere} {
			a := node.create("k", invoiceBody("same"))
			ids[node.created(a).ID] = true
			if a.header.Get("Idempotency-Replayed") != "" {
				t.Errorf("a replay of another taxpayer or environment: %s", a)
			}
			wantReplay(t, "within", a, node.create("k", invoiceBody("same")))
			wantCode(t, "within", node.create("k", invoiceBody("else")), http.StatusConflict, "idempotency_mismatch")
		}
		if len(ids) != 3 {
			t.Errorf("three creations made %d invoices", len(ids))
		}
	})
}

// refusingPlan is a plan that refuses every invoice.
type refusingPlan struct{ pipeline.Sandbox }

func (refusingPlan) Check(context.Context, store.Scope, *fiscal.Invoice) error {
	return fiscal.Problems{{Field: "issue_date", Code: fiscal.CodeOutOfRange, Message: lang.Literal("the window has passed")}}
}

func TestReplayUnderStricterRules(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		opt := envOptions{environment: fiscal.Certification, plan: pipeline.Sandbox{}, masterKey: filepath.Join(t.TempDir(), "master.key")}
		e := newEnv(t, address, opt)
		first := e.create("k", invoiceBody("S-1"))
		e.created(first)
		for name, plan := range map[string]pipeline.Plan{
			"stricter rules": refusingPlan{}, "no certificate": nil,
		} {
			opt.plan = plan
			later := newNode(t, address, opt)
			later.taxpayer, later.key = e.taxpayer, e.key
			wantReplay(t, name, first, later.create("k", invoiceBody("S-1")))
			wantCode(t, name, later.create("k", invoiceBody("S-2")), http.StatusConflict, "idempotency_mismatch")
			if a := later.create("new", invoiceBody("S-2")); a.status == http.StatusAccepted {
				t.Errorf("%s: a new invoice gets %s", name, a)
			}
		}
	})
}

// A request that an earlier release has registered has its answer, although the rules of
// today refuse it.
func TestReplayOfARequestThatIsRefusedToday(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		raw := invoiceBody("O-1", setField("lines.0.taxes.0.code", "OTRO"), setField("due_date", "2100-01-01"))
		document, err := strictjson.Parse(raw)
		e.must(err)
		command, err := pipeline.NewCommand(raw, document, "")
		if err == nil {
			t.Fatal("the request is valid today")
		}
		command.Invoice, err = fiscal.New(fiscal.DecodeRegistered(document))
		e.must(err)
		command.Scope, command.Key, command.Request, command.RequestID = e.scope(), "k", document.Canonical(), "req_"+strings.Repeat("a", 32)
		done, err := e.Pipeline.Register(t.Context(), command)
		e.must(err)
		first := response{status: done.HTTPStatus, body: done.Body, header: http.Header{
			"Location": {done.Location}, "Content-Type": {"application/json; charset=utf-8"}, "X-Request-Id": {command.RequestID},
		}}
		wantReplay(t, "the same key", first, e.create("k", raw))
		wantInvalid(t, "another key", e.create("new", raw), "due_date invalid_date", "lines.0.taxes.0.code unknown_tax")
		if a := e.send(request{path: "invoices/" + done.ObjectID}); a.status != http.StatusOK {
			t.Error(a)
		}
	})
}

// The answer lists everything that is missing, and is not stored under the key.
func TestReadinessFailureIsNotStoredUnderTheKey(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		opt := envOptions{environment: fiscal.Production, masterKey: filepath.Join(t.TempDir(), "master.key")}
		e := newEnv(t, address, opt)
		ctx := t.Context()
		taxpayer, err := e.store.Taxpayer(ctx, e.taxpayer)
		e.must(err)
		want := []string{"certificate certificate.missing", "sequence sequence.missing"}
		for _, address := range []string{"", "Av. Inventada 1"} {
			taxpayer.Address = address
			e.must(e.store.Update(ctx, func(tx *store.Tx) error { return tx.UpdateTaxpayer(ctx, taxpayer) }))
			a := e.create("k", invoiceBody("R-1"))
			wantCode(t, "not ready", a, http.StatusConflict, "operational_readiness_failed")
			expected := want
			if address == "" {
				expected = append([]string{"taxpayer taxpayer.profile_incomplete"}, want...)
			}
			if got := problemsOf(t, a); !slices.Equal(got, expected) {
				t.Errorf("address %q: details %q, want %q", address, got, expected)
			}
			if _, err := e.store.StoredReply(ctx, e.scope(), pipeline.CreateInvoice, "k"); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("want nothing stored under the key, got: %v", err)
			}
		}
		if n := e.stored(1); n != 0 {
			t.Errorf("%d invoices", n)
		}
		opt.plan = pipeline.Sandbox{} // every readiness problem is solved
		ready := newNode(t, address, opt)
		ready.taxpayer, ready.key = e.taxpayer, e.key
		a := ready.create("k", invoiceBody("R-1"))
		ready.created(a)
		if a.header.Get("Idempotency-Replayed") != "" {
			t.Error("the refusal is stored under the key")
		}
	})
}

func TestIdempotencyKeysAreValidated(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
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
			a := e.send(request{method: http.MethodPost, path: "invoices", header: http.Header{"Idempotency-Key": tt.lines}, body: invoiceBody("K")})
			wantCode(t, tt.name, a, http.StatusBadRequest, "bad_request")
			if got := problemsOf(t, a); !slices.Equal(got, []string{"Idempotency-Key " + tt.want}) {
				t.Errorf("%s: details %q, want %s", tt.name, got, tt.want)
			}
		}
		if n := e.stored(1); n != 0 {
			t.Fatalf("%d invoices", n)
		}
		for i, key := range []string{long, "a b", `"quoted"`, "!~", "'; --", "k=v,w"} {
			id := "K" + string(rune('0'+i))
			first := e.create(key, invoiceBody(id))
			e.created(first)
			wantReplay(t, key, first, e.create(key, invoiceBody(id)))
		}
	})
}

// A stored answer outlives the credential that created the invoice.
func TestReplayWithAnotherCredentialOfTheTaxpayer(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		short, _, err := e.credentials().Issue(t.Context(), access.Terms{
			TaxpayerID: e.taxpayer, Environment: e.opt.environment, Scopes: apikey.AllScopes(), ExpiresAt: e.clock.now().Add(time.Minute),
		})
		e.must(err)
		post := request{method: http.MethodPost, path: "invoices", idem: "k", body: invoiceBody("X-1"), key: short.Reveal()}
		first := e.send(post)
		e.created(first)
		e.clock.advance(time.Minute)
		wantCode(t, "expired", e.send(post), http.StatusUnauthorized, "unauthorized")
		wantReplay(t, "another credential", first, e.create("k", invoiceBody("X-1")))
	})
}
