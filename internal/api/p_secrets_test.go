package api_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/api"
	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// pages collects a log.
type pages struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (p *pages) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.b.Write(b)
}

func (p *pages) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.b.String()
}

// logged runs a test on a world of every engine whose log is kept.
func logged(t *testing.T, opt options, test func(t *testing.T, w *world, log *pages)) {
	t.Helper()
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		own, log := opt, &pages{}
		own.log = log
		test(t, start(t, address, own), log)
	})
}

// absent fails for each canary that is in a text, or its secret part alone.
func absent(t *testing.T, where, text string, canaries map[string]string) {
	t.Helper()
	for name, canary := range canaries {
		if strings.Contains(text, canary) {
			at := strings.Index(text, canary)
			t.Errorf("%s tells the %s: …%s…", where, name, text[max(0, at-200):min(len(text), at+len(canary)+50)])
		}
	}
}

// dump is every value of a table as text.
func (w *world) dump(t *testing.T, table string) string {
	t.Helper()
	rows, err := w.database(t).QueryContext(t.Context(), `SELECT * FROM `+table)
	w.must(err)
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	w.must(err)
	var b strings.Builder
	for rows.Next() {
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(any)
		}
		w.must(rows.Scan(values...))
		for i, v := range values {
			switch v := (*v.(*any)).(type) {
			case []byte:
				fmt.Fprintf(&b, "%s=%s %x ", columns[i], v, v)
			default:
				fmt.Fprintf(&b, "%s=%v ", columns[i], v)
			}
		}
		b.WriteByte('\n')
	}
	w.must(rows.Err())
	return b.String()
}

func TestP06NoSecretIsStored(t *testing.T) {
	logged(t, options{}, func(t *testing.T, w *world, log *pages) {
		w.created(w.create("k", body("A")))
		successor, _, err := w.credentials().Rotate(t.Context(), w.credentialOf(w.key).ID, 0)
		w.must(err)
		w.send(request{path: "invoices", key: successor.Reveal()})
		for _, key := range []string{w.key, successor.Reveal()} {
			plainHash := sha256.Sum256([]byte(key))
			canaries := map[string]string{
				"key": key, "secret": key[16:], "secret without its checksum": key[16:59],
				"hash without the pepper": fmt.Sprintf("%x", plainHash),
			}
			for _, table := range []string{"credentials", "secrets", "history", "idempotency", "invoices", "jobs", "rate_windows"} {
				absent(t, table, w.dump(t, table), canaries)
			}
			absent(t, "log", log.String(), canaries)
			if !strings.Contains(w.dump(t, "credentials"), key[3:15]) {
				t.Error("the table was not read")
			}
			if got := w.credentialOf(key); len(got.Digest) != sha256.Size || bytes.Equal(got.Digest, plainHash[:]) {
				t.Errorf("the digest is %x", got.Digest)
			}
			if path, ok := strings.CutPrefix(w.address, "sqlite:"); ok {
				for _, suffix := range []string{"", "-wal"} {
					raw, err := os.ReadFile(path + suffix)
					w.must(err)
					absent(t, "the file "+suffix, string(raw), canaries)
				}
			}
		}
	})
}

// Every way to an error, with secrets in all places where a client puts them.
// The buyer's data may be in answers to the buyer's own side of the contract
// only, which shows none of them; so no answer has them either.
func TestP100CanariesAreNeverTold(t *testing.T) {
	const mail, phone, idem = "canary.mail@buyer.example", "809-555-0199-77", "canary-idempotency-key-5531"
	plan := scripted{check: func(_ context.Context, inv *fiscal.Invoice) error {
		switch {
		case strings.HasPrefix(inv.ExternalID, "panic with the invoice"):
			panic(inv)
		case strings.HasPrefix(inv.ExternalID, "panic with an error"):
			panic(fmt.Errorf("mail to %s, phone %s", inv.Buyer.Email, inv.Buyer.Phone))
		case strings.HasPrefix(inv.ExternalID, "panic with text"):
			panic("mail to " + inv.Buyer.Email)
		case strings.HasPrefix(inv.ExternalID, "fail"):
			return errors.New("a bug")
		}
		return nil
	}}
	logged(t, options{plan: plan, rateLimit: 500}, func(t *testing.T, w *world, log *pages) {
		buyer := func(v map[string]any) {
			v["buyer"] = map[string]any{"legal_name": "Consumidor final", "email": mail, "phone": phone}
		}
		bad := stranger(t, fiscal.Sandbox)
		canaries := map[string]string{
			"key": w.key, "secret": w.key[16:], "unknown key": bad, "unknown secret": bad[16:], "e-mail": mail, "phone": phone, "idempotency key": idem,
			"authorization": "Bearer " + w.key[:8],
		}
		s, cut := w.lost(t)
		blind := w.beside(t, func(o *api.Options, _ *http.Server) { o.Store = s })
		cut()
		scopeless := w.newKey(w.taxpayer, fiscal.Sandbox, apikey.WebhooksManage)
		elsewhere := w.newKey(w.taxpayer, fiscal.Production, apikey.AllScopes()...)
		canaries["key without scopes"], canaries["key of production"] = scopeless[16:], elsewhere[16:]
		n := 0
		create := func(to *world, key string, header http.Header, change ...func(map[string]any)) answer {
			n++
			text := body(fmt.Sprint("canary-", n), append([]func(map[string]any){buyer}, change...)...)
			return to.send(request{method: http.MethodPost, path: "invoices", key: key, idem: idem + fmt.Sprint(n), header: header, body: text})
		}
		external := func(id string) func(map[string]any) { return func(v map[string]any) { v["external_id"] = id } }
		part := func(name string, value any) func(map[string]any) {
			return func(v map[string]any) { v["buyer"].(map[string]any)[name] = value }
		}
		raw := func(text string) answer {
			return w.send(request{method: http.MethodPost, path: "invoices", idem: idem, body: []byte(text)})
		}
		good := create(w, "", nil)
		made := w.created(good)
		answers := map[string]answer{
			"accepted":         good,
			"replayed":         w.create(idem+"1", body("canary-1", buyer)),
			"mismatch":         w.create(idem+"1", body("other", buyer)),
			"conflict":         create(w, "", nil, external("canary-1")),
			"unknown key":      create(w, bad, nil),
			"forged key":       create(w, forge(t, w.key), nil),
			"no scope":         create(w, scopeless, nil),
			"environment":      create(w, elsewhere, nil),
			"media type":       create(w, "", http.Header{"Content-Type": {"text/" + mail}}),
			"coding":           create(w, "", http.Header{"Content-Encoding": {mail}}),
			"scenario":         create(w, "", http.Header{"Sandbox-Scenario": {mail}}),
			"request id":       create(w, "", http.Header{"X-Request-Id": {mail}}),
			"bad idempotency":  create(w, "", http.Header{"Idempotency-Key": {idem, idem}}),
			"long idempotency": create(w, "", http.Header{"Idempotency-Key": {strings.Repeat(idem, 20)}}),
			"e-mail twice":     create(w, "", nil, part("email", mail+".."+mail)),
			"e-mail as tax id": create(w, "", nil, part("tax_id", mail)),
			"e-mail as list":   create(w, "", nil, part("email", []string{mail})),
			"phone too long":   create(w, "", nil, part("phone", strings.Repeat(phone, 5))),
			"e-mail as type":   create(w, "", nil, func(v map[string]any) { v["ecf_type"] = mail }),
			"e-mail as date":   create(w, "", nil, func(v map[string]any) { v["issue_date"] = mail }),
			"e-mail as total": create(w, "", nil, func(v map[string]any) {
				v["declared_totals"].(map[string]any)["total"] = mail
			}),
			"broken JSON":           raw(`{"email": "` + mail + `", "phone": "` + phone + `" "key": "` + w.key + `"`),
			"cut-off JSON":          raw(`{"email": "` + mail),
			"duplicate member":      raw(`{"a": "` + mail + `", "a": "` + phone + `"}`),
			"a literal of its own":  raw(`{"a": ` + mail + `}`),
			"a text at top level":   raw(`"` + mail + `"`),
			"panic with the value":  create(w, "", nil, external("panic with the invoice")),
			"panic with an error":   create(w, "", nil, external("panic with an error")),
			"panic with text":       create(w, "", nil, external("panic with text")),
			"internal error":        create(w, "", nil, external("fail")),
			"no database":           create(blind, "", nil),
			"unknown path":          w.send(request{path: "/v1/" + w.key}),
			"key in the query":      w.send(request{path: "invoices?api_key=" + w.key}),
			"mail as cursor":        w.send(request{path: "invoices?cursor=" + mail}),
			"mail as status":        w.send(request{path: "invoices?status=" + mail}),
			"key as resource":       w.send(request{path: "invoices/" + w.key}),
			"key as taxpayer":       w.send(request{path: "/v1/taxpayers/" + w.key + "/invoices"}),
			"key as method":         w.send(request{method: strings.ReplaceAll(w.key, "_", "-"), path: "invoices"}),
			"invoice":               w.send(request{path: "invoices/" + made.ID}),
			"document":              w.send(request{path: "fiscal-documents/" + made.FiscalDocumentID}),
			"list":                  w.send(request{path: "invoices"}),
			"resource of nobody":    w.send(request{path: "invoices/" + store.NewID()}),
			"artifact not produced": w.send(request{path: "fiscal-documents/" + made.FiscalDocumentID + "/xml"}),
		}
		for _, name := range slices.Sorted(maps.Keys(answers)) {
			a := answers[name]
			if strings.HasPrefix(name, "panic") && a.status != http.StatusInternalServerError {
				t.Errorf("%s: %s", name, a)
			}
			absent(t, "the answer to "+name, fmt.Sprintf("%s %v", a.body, a.header), canaries)
		}
		for _, of := range []*world{w, blind} {
			figures, err := of.plain(t, "/metrics")
			w.must(err)
			if !bytes.Contains(figures.body, []byte("fiscalhub_http_requests_total")) {
				t.Error("no figures")
			}
			absent(t, "metrics", string(figures.body), canaries)
			absent(t, "metrics", string(figures.body), map[string]string{"taxpayer": w.taxpayer, "invoice": made.ID, "prefix": w.key[3:15]})
		}
		text := log.String()
		if !strings.Contains(text, `"msg":"panic"`) || !strings.Contains(text, w.key[3:15]) || !strings.Contains(text, made.ID) {
			t.Error("the log does not tell what it should")
		}
		absent(t, "the log", text, canaries)
	})
}
