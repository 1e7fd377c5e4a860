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

// logBuffer collects log lines.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (p *logBuffer) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.b.Write(b)
}

func (p *logBuffer) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.b.String()
}

// eachEngineLogging runs a test with a logBuffer on each database engine.
func eachEngineLogging(t *testing.T, opt envOptions, test func(t *testing.T, e *env, log *logBuffer)) {
	t.Helper()
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		own, log := opt, &logBuffer{}
		own.log = log
		test(t, newEnv(t, address, own), log)
	})
}

// wantAbsent reports each secret that a text contains.
func wantAbsent(t *testing.T, where, text string, secrets map[string]string) {
	t.Helper()
	for name, secret := range secrets {
		if strings.Contains(text, secret) {
			at := strings.Index(text, secret)
			t.Errorf("%s contains the %s: …%s…", where, name, text[max(0, at-200):min(len(text), at+len(secret)+50)])
		}
	}
}

// dumpTable returns all values of a table as text.
func (e *env) dumpTable(t *testing.T, table string) string {
	t.Helper()
	rows, err := e.database(t).QueryContext(t.Context(), `SELECT * FROM `+table)
	e.must(err)
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	e.must(err)
	var b strings.Builder
	for rows.Next() {
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(any)
		}
		e.must(rows.Scan(values...))
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
	e.must(rows.Err())
	return b.String()
}

func TestNoSecretIsStored(t *testing.T) {
	eachEngineLogging(t, envOptions{}, func(t *testing.T, e *env, log *logBuffer) {
		e.created(e.create("k", invoiceBody("A")))
		successor, _, err := e.credentials().Rotate(t.Context(), e.storedCredential(e.key).ID, 0)
		e.must(err)
		e.send(request{path: "invoices", key: successor.Reveal()})
		for _, key := range []string{e.key, successor.Reveal()} {
			plainHash := sha256.Sum256([]byte(key))
			secrets := map[string]string{
				"key": key, "secret": key[16:], "secret without its checksum": key[16:59],
				"hash without the pepper": fmt.Sprintf("%x", plainHash),
			}
			for _, table := range []string{"credentials", "secrets", "history", "idempotency", "invoices", "jobs", "rate_windows"} {
				wantAbsent(t, table, e.dumpTable(t, table), secrets)
			}
			wantAbsent(t, "log", log.String(), secrets)
			if !strings.Contains(e.dumpTable(t, "credentials"), key[3:15]) {
				t.Error("the table was not read")
			}
			if got := e.storedCredential(key); len(got.Digest) != sha256.Size || bytes.Equal(got.Digest, plainHash[:]) {
				t.Errorf("the digest is %x", got.Digest)
			}
			if path, ok := strings.CutPrefix(e.address, "sqlite:"); ok {
				for _, suffix := range []string{"", "-wal"} {
					raw, err := os.ReadFile(path + suffix)
					e.must(err)
					wantAbsent(t, "the file "+suffix, string(raw), secrets)
				}
			}
		}
	})
}

// The test causes every kind of error with secrets in every part of a request
// where a client may put them. No answer, log line or metric may contain them.
func TestSecretsAreNotInAnswersLogsOrMetrics(t *testing.T) {
	const mail, phone, idem = "canary.mail@buyer.example", "809-555-0199-77", "canary-idempotency-key-5531"
	plan := stubPlan{check: func(_ context.Context, inv *fiscal.Invoice) error {
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
	eachEngineLogging(t, envOptions{plan: plan, rateLimit: 500}, func(t *testing.T, e *env, log *logBuffer) {
		buyer := func(v map[string]any) {
			v["buyer"] = map[string]any{"legal_name": "Consumidor final", "email": mail, "phone": phone}
		}
		bad := unknownKey(t, fiscal.Sandbox)
		secrets := map[string]string{
			"key": e.key, "secret": e.key[16:], "unknown key": bad, "unknown secret": bad[16:], "e-mail": mail, "phone": phone, "idempotency key": idem,
			"authorization": "Bearer " + e.key[:8],
		}
		s, cut := e.breakableStore(t)
		blind := e.withService(t, func(o *api.Options, _ *http.Server) { o.Store = s })
		cut()
		scopeless := e.newKey(e.taxpayer, fiscal.Sandbox, apikey.WebhooksManage)
		elsewhere := e.newKey(e.taxpayer, fiscal.Production, apikey.AllScopes()...)
		secrets["key without scopes"], secrets["key of production"] = scopeless[16:], elsewhere[16:]
		n := 0
		create := func(to *env, key string, header http.Header, change ...func(map[string]any)) response {
			n++
			text := invoiceBody(fmt.Sprint("canary-", n), append([]func(map[string]any){buyer}, change...)...)
			return to.send(request{method: http.MethodPost, path: "invoices", key: key, idem: idem + fmt.Sprint(n), header: header, body: text})
		}
		external := func(id string) func(map[string]any) { return func(v map[string]any) { v["external_id"] = id } }
		part := func(name string, value any) func(map[string]any) {
			return func(v map[string]any) { v["buyer"].(map[string]any)[name] = value }
		}
		raw := func(text string) response {
			return e.send(request{method: http.MethodPost, path: "invoices", idem: idem, body: []byte(text)})
		}
		good := create(e, "", nil)
		made := e.created(good)
		answers := map[string]response{
			"accepted":         good,
			"replayed":         e.create(idem+"1", invoiceBody("canary-1", buyer)),
			"mismatch":         e.create(idem+"1", invoiceBody("other", buyer)),
			"conflict":         create(e, "", nil, external("canary-1")),
			"unknown key":      create(e, bad, nil),
			"forged key":       create(e, forgeKey(t, e.key), nil),
			"no scope":         create(e, scopeless, nil),
			"environment":      create(e, elsewhere, nil),
			"media type":       create(e, "", http.Header{"Content-Type": {"text/" + mail}}),
			"coding":           create(e, "", http.Header{"Content-Encoding": {mail}}),
			"scenario":         create(e, "", http.Header{"Sandbox-Scenario": {mail}}),
			"request id":       create(e, "", http.Header{"X-Request-Id": {mail}}),
			"bad idempotency":  create(e, "", http.Header{"Idempotency-Key": {idem, idem}}),
			"long idempotency": create(e, "", http.Header{"Idempotency-Key": {strings.Repeat(idem, 20)}}),
			"e-mail twice":     create(e, "", nil, part("email", mail+".."+mail)),
			"e-mail as tax id": create(e, "", nil, part("tax_id", mail)),
			"e-mail as list":   create(e, "", nil, part("email", []string{mail})),
			"phone too long":   create(e, "", nil, part("phone", strings.Repeat(phone, 5))),
			"e-mail as type":   create(e, "", nil, func(v map[string]any) { v["ecf_type"] = mail }),
			"e-mail as date":   create(e, "", nil, func(v map[string]any) { v["issue_date"] = mail }),
			"e-mail as total": create(e, "", nil, func(v map[string]any) {
				v["declared_totals"].(map[string]any)["total"] = mail
			}),
			"broken JSON":           raw(`{"email": "` + mail + `", "phone": "` + phone + `" "key": "` + e.key + `"`),
			"cut-off JSON":          raw(`{"email": "` + mail),
			"duplicate member":      raw(`{"a": "` + mail + `", "a": "` + phone + `"}`),
			"a literal of its own":  raw(`{"a": ` + mail + `}`),
			"a text at top level":   raw(`"` + mail + `"`),
			"panic with the value":  create(e, "", nil, external("panic with the invoice")),
			"panic with an error":   create(e, "", nil, external("panic with an error")),
			"panic with text":       create(e, "", nil, external("panic with text")),
			"internal error":        create(e, "", nil, external("fail")),
			"no database":           create(blind, "", nil),
			"unknown path":          e.send(request{path: "/v1/" + e.key}),
			"key in the query":      e.send(request{path: "invoices?api_key=" + e.key}),
			"mail as cursor":        e.send(request{path: "invoices?cursor=" + mail}),
			"mail as status":        e.send(request{path: "invoices?status=" + mail}),
			"key as resource":       e.send(request{path: "invoices/" + e.key}),
			"key as taxpayer":       e.send(request{path: "/v1/taxpayers/" + e.key + "/invoices"}),
			"key as method":         e.send(request{method: strings.ReplaceAll(e.key, "_", "-"), path: "invoices"}),
			"invoice":               e.send(request{path: "invoices/" + made.ID}),
			"document":              e.send(request{path: "fiscal-documents/" + made.FiscalDocumentID}),
			"list":                  e.send(request{path: "invoices"}),
			"unknown resource":      e.send(request{path: "invoices/" + store.NewID()}),
			"artifact not produced": e.send(request{path: "fiscal-documents/" + made.FiscalDocumentID + "/xml"}),
		}
		for _, name := range slices.Sorted(maps.Keys(answers)) {
			a := answers[name]
			if strings.HasPrefix(name, "panic") && a.status != http.StatusInternalServerError {
				t.Errorf("%s: %s", name, a)
			}
			wantAbsent(t, "the answer to "+name, fmt.Sprintf("%s %v", a.body, a.header), secrets)
		}
		for _, of := range []*env{e, blind} {
			metrics, err := of.getPlain(t, "/metrics")
			e.must(err)
			if !bytes.Contains(metrics.body, []byte("fiscalhub_http_requests_total")) {
				t.Error("no metrics")
			}
			wantAbsent(t, "metrics", string(metrics.body), secrets)
			wantAbsent(t, "metrics", string(metrics.body), map[string]string{"taxpayer": e.taxpayer, "invoice": made.ID, "prefix": e.key[3:15]})
		}
		text := log.String()
		if !strings.Contains(text, `"msg":"A handler panicked`) || !strings.Contains(text, e.key[3:15]) || !strings.Contains(text, made.ID) {
			t.Error("the log does not have the expected lines")
		}
		wantAbsent(t, "the log", text, secrets)
	})
}
