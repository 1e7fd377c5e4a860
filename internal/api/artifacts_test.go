package api_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/capacity"
	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig/xmlsigtest"
)

// queuedPlan is a plan that leaves invoices queued.
type queuedPlan struct{ pipeline.Sandbox }

func (queuedPlan) Start(inv *fiscal.Invoice, _ pipeline.Scenario) pipeline.Start {
	return pipeline.Start{Status: fiscal.Queued, Messages: inv.Warnings, Cause: "test"}
}

// createSigned creates an invoice, signs and stores its document as the live plan
// does, and gives it the statuses of path one after the other.
func (e *env) createSigned(n int, path ...fiscal.Status) (resource, []byte) {
	e.t.Helper()
	ctx, name := e.t.Context(), fmt.Sprintf("artifact-%d", n)
	raw := invoiceBody(name)
	made := e.created(e.create(name, raw))
	parsed, err := strictjson.Parse(raw)
	e.must(err)
	inv, err := fiscal.New(fiscal.DecodeRequest(parsed))
	e.must(err)
	encf, err := fiscal.NewENCF(inv.Type, int64(n))
	e.must(err)
	number := ecf.Number{ENCF: encf}
	if inv.Type == fiscal.FiscalCredit {
		number.Expires = inv.IssueDate
	}
	issuer := ecf.Issuer{RNC: "199000013", LegalName: "Distribuidora Palma Clara, SRL", Address: "Av. Inventada 1", IncomeType: "01"}
	draft, err := ecf.New(issuer, number, inv, e.opt.now())
	e.must(err)
	xml, code, err := draft.Sign(xmlsigtest.Must(e.t, xmlsigtest.Options{}).Identity)
	e.must(err)
	sum := sha256.Sum256(xml)
	scope := store.Scope{Environment: e.opt.environment, TaxpayerID: e.taxpayer}
	e.must(e.store.Update(ctx, func(tx *store.Tx) error {
		err := tx.Issue(ctx, store.Issued{
			Scope: scope, RNC: issuer.RNC, ENCF: encf.String(), DocumentID: made.FiscalDocumentID, SecurityCode: code.String(),
			SignedAt: e.opt.now(), CreatedAt: e.opt.now(), XML: xml, XMLDigest: sum[:], SentDigest: sum[:],
		})
		if err != nil {
			return err
		}
		for _, status := range path {
			before, err := tx.Invoice(ctx, scope, made.ID)
			if err != nil {
				return err
			}
			after := before
			after.Status = status
			if err := tx.Do(ctx, new(store.Batch).ChangeStatus(before, after)); err != nil {
				return err
			}
		}
		return nil
	}))
	return made, xml
}

func (e *env) getArtifact(made resource, file string, header ...string) response {
	e.t.Helper()
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Add(header[i], header[i+1])
	}
	return e.send(request{path: "fiscal-documents/" + made.FiscalDocumentID + "/" + file, header: h})
}

func TestArtifactsDependOnTheStatus(t *testing.T) {
	eachEngine(t, envOptions{plan: queuedPlan{}}, func(t *testing.T, e *env) {
		for i, tt := range []struct {
			path     []fiscal.Status
			xml, pdf bool
		}{
			{nil, false, false},
			{[]fiscal.Status{fiscal.ValidationFailed}, false, false},
			{[]fiscal.Status{fiscal.Submitted}, false, false},
			{[]fiscal.Status{fiscal.Submitted, fiscal.Processing}, false, false},
			{[]fiscal.Status{fiscal.OutcomeUnknown}, false, false},
			{[]fiscal.Status{fiscal.Rejected}, true, false},
			{[]fiscal.Status{fiscal.Accepted}, true, true},
			{[]fiscal.Status{fiscal.AcceptedConditional}, true, true},
			{[]fiscal.Status{fiscal.Accepted, fiscal.Delivered}, true, true},
		} {
			made, xml := e.createSigned(i+1, tt.path...)
			for file, there := range map[string]bool{"xml": tt.xml, "pdf": tt.pdf} {
				a := e.getArtifact(made, file)
				switch {
				case !there:
					wantCode(t, fmt.Sprint(tt.path, file), a, http.StatusConflict, "artifact_not_ready")
				case a.status != http.StatusOK:
					t.Errorf("%v %s: %d", tt.path, file, a.status)
				case file == "xml" && !bytes.Equal(a.body, xml):
					t.Errorf("%v: the XML is not the signed one", tt.path)
				}
			}
		}
	})
}

func TestArtifactsNeverChange(t *testing.T) {
	eachEngine(t, envOptions{plan: queuedPlan{}}, func(t *testing.T, e *env) {
		made, _ := e.createSigned(7, fiscal.Accepted)
		for file, media := range map[string]string{"xml": "application/xml", "pdf": "application/pdf"} {
			first := e.getArtifact(made, file)
			sum := sha256.Sum256(first.body)
			etag := `"sha256:` + hex.EncodeToString(sum[:]) + `"`
			for name, want := range map[string]string{
				"ETag": etag, "Content-Type": media, "Cache-Control": "private, no-cache", "Accept-Ranges": "none",
				"Repr-Digest":         "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":",
				"Content-Disposition": `attachment; filename="199000013E320000000007.` + file + `"`,
			} {
				if got := first.header.Get(name); got != want {
					t.Errorf("%s: %s is %q, want %q", file, name, got, want)
				}
			}
			for _, tag := range []string{etag, "W/" + etag, `"other", ` + etag, "*"} {
				a := e.getArtifact(made, file, "If-None-Match", tag)
				if a.status != http.StatusNotModified || len(a.body) > 0 || a.header.Get("ETag") != etag || a.header.Get("RateLimit-Limit") == "" {
					t.Errorf("%s: If-None-Match %s: %s", file, tag, a)
				}
			}
			if a := e.getArtifact(made, file, "If-None-Match", `"other"`); a.status != http.StatusOK || !bytes.Equal(a.body, first.body) {
				t.Errorf("%s: %d with another validator", file, a.status)
			}
			head := e.send(request{method: http.MethodHead, path: "fiscal-documents/" + made.FiscalDocumentID + "/" + file})
			if head.status != http.StatusOK || len(head.body) > 0 || head.header.Get("ETag") != etag {
				t.Errorf("%s: HEAD: %s", file, head)
			}
			// The same after a restart, and 403 without the scope.
			again := newNode(t, e.address, e.opt)
			again.taxpayer, again.key = e.taxpayer, e.key
			if a := again.getArtifact(made, file); !bytes.Equal(a.body, first.body) || a.header.Get("ETag") != etag {
				t.Errorf("%s: the bytes changed after a restart", file)
			}
			weak := e.newKey(e.taxpayer, e.opt.environment, apikey.InvoicesRead)
			a := e.send(request{path: "fiscal-documents/" + made.FiscalDocumentID + "/" + file, key: weak, header: http.Header{"If-None-Match": {etag}}})
			wantCode(t, file, a, http.StatusForbidden, "forbidden")
		}
	})
}

// Concurrent requests for the PDF get the same bytes.
func TestConcurrentReadsGetTheSamePDF(t *testing.T) {
	eachEngine(t, envOptions{plan: queuedPlan{}}, func(t *testing.T, e *env) {
		made, _ := e.createSigned(9, fiscal.Accepted)
		var wait sync.WaitGroup
		bodies := make([][]byte, 8)
		for i := range bodies {
			wait.Go(func() { bodies[i] = e.getArtifact(made, "pdf").body })
		}
		wait.Wait()
		for _, b := range bodies {
			if !bytes.Equal(b, bodies[0]) || !bytes.HasPrefix(b, []byte("%PDF-")) {
				t.Fatal("the PDFs differ")
			}
		}
	})
}

// The refusal of a file has none of the headers of the file.
func TestRefusedFileIsNotStoredByClients(t *testing.T) {
	oneEngine(t, liveOptions(), func(t *testing.T, e *env) {
		made, _ := e.createSigned(1)
		page := bytes.Repeat([]byte("%PDF"), 16<<10) // larger than an answer that is always sent
		sum := sha256.Sum256(page)
		_, err := e.store.KeepPrintedPage(t.Context(), e.scope(), made.FiscalDocumentID, store.PrintedPage{Digest: sum[:], PDF: page})
		e.must(err)
		limited := e.withLimits(t, capacity.DefaultLimits(1<<30, 2))
		hold, err := limited.capacity.HoldAnswer(capacity.Holder{Credential: e.key[3:15], Taxpayer: e.taxpayer}, 1<<30)
		e.must(err)
		defer hold.Release()
		a := limited.send(request{path: "fiscal-documents/" + made.FiscalDocumentID + "/pdf"})
		if a.status != http.StatusTooManyRequests || a.header.Get("Cache-Control") != "no-store" || a.header.Get("ETag") != "" {
			t.Errorf("%d %v", a.status, a.header)
		}
	})
}

// setPageFormat changes the format of the taxpayer's printed pages.
func (e *env) setPageFormat(format string) {
	e.t.Helper()
	e.must(e.store.Update(e.t.Context(), func(tx *store.Tx) error {
		taxpayer, err := tx.Taxpayer(e.t.Context(), e.taxpayer)
		if err != nil {
			return err
		}
		taxpayer.PageFormat = format
		return tx.UpdateTaxpayer(e.t.Context(), taxpayer)
	}))
}

func TestPrintedPageHasTheFormatThatIsAskedFor(t *testing.T) {
	eachEngine(t, envOptions{plan: queuedPlan{}}, func(t *testing.T, e *env) {
		made, _ := e.createSigned(11, fiscal.Accepted)
		widths := map[string]string{"letter": "612.00", "receipt": "226.77", "receipt58": "164.41"}
		first := make(map[string][]byte)
		for format, width := range widths {
			a := e.getArtifact(made, "pdf?format="+format)
			if a.status != http.StatusOK || !bytes.Contains(a.body, []byte("/MediaBox [0 0 "+width+" ")) {
				t.Errorf("%s: %d, and the page is not %s points wide", format, a.status, width)
			}
			first[format] = a.body
		}
		// Without the parameter, the page has the format of the taxpayer. No page
		// changes with that format.
		for taxpayer, want := range map[string]string{"": "letter", "letter": "letter", "receipt": "receipt", "receipt58": "receipt58"} {
			e.setPageFormat(taxpayer)
			if a := e.getArtifact(made, "pdf"); !bytes.Equal(a.body, first[want]) {
				t.Errorf("taxpayer with %q: the page is not that of %s", taxpayer, want)
			}
			for format := range widths {
				if a := e.getArtifact(made, "pdf?other=1&format="+format); !bytes.Equal(a.body, first[format]) {
					t.Errorf("taxpayer with %q: the page in %s has changed", taxpayer, format)
				}
			}
		}
	})
}

func TestUnknownPageFormatIsRefused(t *testing.T) {
	oneEngine(t, envOptions{plan: queuedPlan{}}, func(t *testing.T, e *env) {
		made, _ := e.createSigned(12, fiscal.Accepted)
		for query, code := range map[string]string{
			"format=A4": "invalid_enum", "format=": "invalid_enum", "format": "invalid_enum", "format=Letter": "invalid_enum",
			"format=%zz": "invalid_enum", "format=letter&format=letter": "duplicate_parameter",
		} {
			a := e.getArtifact(made, "pdf?"+query)
			wantCode(t, query, a, http.StatusBadRequest, "bad_request")
			d := a.details(t)
			if len(d) != 1 || d[0].Field != "format" || d[0].Code != code || code == "invalid_enum" && !strings.Contains(d[0].Message, "letter, receipt or receipt58") {
				t.Errorf("%s: details %+v", query, d)
			}
		}
	})
}

// Everything that the document or the page cannot show as it was sent is in the
// status messages.
func TestLossesAreInTheStatusMessages(t *testing.T) {
	oneEngine(t, envOptions{}, func(t *testing.T, e *env) {
		inv := e.created(e.create("k", invoiceBody("A-1",
			setField("notes", "Entrega el lunes 😀\n"+strings.Repeat("nota ", 60)),
			setField("payment_terms", "30 días después de la entrega"),
			setField("lines.0.description", "Café\nmolido 漢"))))
		got := strings.Join(e.readDocument(inv.FiscalDocumentID).StatusMessages, "\n")
		for _, want := range []string{
			"notes: the fiscal document carries the first 249 characters", "notes: the fiscal document has spaces in the place of line breaks",
			"notes: the printed page shows � for characters that its font does not have: U+1F600",
			"payment_terms: the fiscal document omits them", "lines.0.description: the fiscal document and the printed page have spaces",
			"lines.0.description: the printed page shows � for characters that its font does not have: U+6F22",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in:\n%s", want, got)
			}
		}
		plain := e.created(e.create("k2", invoiceBody("A-2",
			setField("notes", "Año 2026 – 20 °C, 3 m², ½ lb, 5 €, £, ¥, ¢, ™, ®, •, —, “cita”, 2 × 3 ÷ 4, ≤ 5, ≥ 6…"), setField("payment_terms", "30 días"))))
		if got := e.readDocument(plain.FiscalDocumentID).StatusMessages; len(got) != 1 {
			t.Errorf("messages of an invoice that loses nothing: %q", got)
		}
	})
}
