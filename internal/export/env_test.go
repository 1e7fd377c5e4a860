package export

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig/xmlsigtest"
)

const issuerRNC = "199000013"

// queuedPlan leaves invoices queued: the test signs them.
type queuedPlan struct{ pipeline.Sandbox }

func (queuedPlan) Start(inv *fiscal.Invoice, _ pipeline.Scenario) pipeline.Start {
	return pipeline.Start{Status: fiscal.Queued, Messages: inv.Warnings, Cause: "test"}
}

// env is a database with a taxpayer, and the folder of the test.
type env struct {
	t        *testing.T
	store    *store.Store
	pipeline *pipeline.Pipeline
	clock    *storetest.Clock
	scope    store.Scope
	leaf     *xmlsigtest.Leaf
	dir      string
	address  string
	made     int
}

func newEnv(t *testing.T, address string) *env {
	t.Helper()
	e := &env{t: t, address: address, clock: storetest.NewClock(), dir: t.TempDir(), leaf: xmlsigtest.Must(t, xmlsigtest.Options{})}
	e.store = storetest.Open(t, address, e.clock.Now)
	var err error
	e.pipeline, err = pipeline.New(pipeline.Options{Store: e.store, Plan: queuedPlan{}, Env: fiscal.Certification, Now: e.clock.Now, Log: slog.New(slog.DiscardHandler)})
	e.must(err)
	e.scope = store.Scope{Environment: fiscal.Certification, TaxpayerID: store.NewID()}
	now := e.clock.Now()
	e.must(e.store.Update(t.Context(), func(tx *store.Tx) error {
		return tx.CreateTaxpayer(t.Context(), store.Taxpayer{ID: e.scope.TaxpayerID, RNC: issuerRNC, LegalName: "Palma Clara, SRL", Phones: []string{}, CreatedAt: now, UpdatedAt: now})
	}))
	return e
}

func (e *env) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

// day returns the first date of issue of the documents, and the one n days later.
func (e *env) day(n int) fiscal.Date { return fiscal.DateOf(e.clock.Now().AddDate(0, 0, n)) }

// add creates an invoice of a day, and signs it unless status is queued.
func (e *env) add(day fiscal.Date, status fiscal.Status, buyer string) {
	e.t.Helper()
	e.addTaxed(day, status, buyer, `"billing_indicator":1,"taxes":[]`, 18, fiscal.DecodeRequest)
}

// addTaxed is add for a line of 100.00 with other taxes, which a release reads with decode.
func (e *env) addTaxed(day fiscal.Date, status fiscal.Status, buyer, taxes string, percent int, decode func(*strictjson.Document) fiscal.Request) store.Invoice {
	e.t.Helper()
	ctx := e.t.Context()
	e.made++
	name := fmt.Sprintf("F-%03d", e.made)
	raw := fmt.Appendf(nil, `{"external_id":%q,"ecf_type":"32","issue_date":%q,"currency":"DOP","payment_type":"cash","buyer":{"legal_name":%q},
		"lines":[{"line_id":"1","description":"Servicio","item_kind":"service","quantity":"1","unit_price":"100.00","discount":null,%s}],
		"declared_totals":{"subtotal":"100.00","discount_total":"0","tax_total":"%d.00","total":"%d.00"}}`, name, day.String(), buyer, taxes, percent, 100+percent)
	document, err := strictjson.Parse(raw)
	e.must(err)
	command, _ := pipeline.NewCommand(raw, document, "")
	command.Invoice, err = fiscal.New(decode(document))
	e.must(err)
	command.Request = document.Canonical()
	command.Scope, command.Key, command.RequestID = e.scope, name, "req_"+strings.Repeat("0", 32)
	done, err := e.pipeline.Register(ctx, command)
	e.must(err)
	inv, err := e.store.Invoice(ctx, e.scope, done.ObjectID)
	e.must(err)
	if status != fiscal.Queued {
		e.sign(command.Invoice, inv, status)
	}
	return inv
}

func (e *env) sign(request *fiscal.Invoice, inv store.Invoice, status fiscal.Status) {
	e.t.Helper()
	ctx := e.t.Context()
	encf, err := fiscal.NewENCF(request.Type, int64(e.made))
	e.must(err)
	draft, err := ecf.New(ecf.Issuer{RNC: issuerRNC, LegalName: "Palma Clara, SRL", Address: "Calle 1", IncomeType: "01"}, ecf.Number{ENCF: encf}, request, e.clock.Now())
	e.must(err)
	xml, code, err := draft.Sign(e.leaf.Identity)
	e.must(err)
	sum := sha256.Sum256(xml)
	e.must(e.store.Update(ctx, func(tx *store.Tx) error {
		if err := tx.Issue(ctx, store.Issued{
			Scope: e.scope, RNC: issuerRNC, ENCF: encf.String(), DocumentID: inv.DocumentID, SecurityCode: code.String(),
			SignedAt: e.clock.Now(), CreatedAt: e.clock.Now(), XML: xml, XMLDigest: sum[:], SentDigest: sum[:],
		}); err != nil {
			return err
		}
		before, err := tx.Invoice(ctx, e.scope, inv.ID)
		if err != nil {
			return err
		}
		after := before
		after.Status = status
		return tx.Do(ctx, new(store.Batch).ChangeStatus(before, after))
	}))
}

// options returns the options of an export of the first two days, with small parts.
func (e *env) options() Options {
	return Options{Store: e.store, Pipeline: e.pipeline, Scope: e.scope, From: e.day(0), To: e.day(1), Now: e.clock.Now, part: 2}
}

func (e *env) path() string { return filepath.Join(e.dir, "export.zip") }

func (e *env) write(o Options) Manifest {
	e.t.Helper()
	m, err := Write(e.t.Context(), e.path(), o)
	e.must(err)
	return m
}

// files returns the contents of an export by name.
func (e *env) files(path string) map[string]string {
	e.t.Helper()
	archive, err := zip.OpenReader(path)
	e.must(err)
	all := map[string]string{}
	for _, f := range archive.File {
		in, err := f.Open()
		e.must(err)
		content, err := io.ReadAll(in)
		e.must(err)
		all[f.Name] = string(content)
	}
	e.must(archive.Close())
	return all
}

func (e *env) verify(path string) *Report {
	e.t.Helper()
	r, err := Verify(context.Background(), path, nil)
	e.must(err)
	return r
}

// jobs returns the exports of a node on the database.
func (e *env) jobs() *Jobs {
	e.t.Helper()
	j, err := NewJobs(JobsOptions{
		Store: e.store, Pipeline: e.pipeline, Environment: fiscal.Certification, Dir: filepath.Join(e.dir, "exports"), Now: e.clock.Now, Log: slog.New(slog.DiscardHandler),
	})
	e.must(err)
	return j
}
