package bulk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/client"
	"github.com/fiscalhub/fiscalhub/internal/bulk"
	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// invoice returns a valid request.
func invoice(id string) string {
	return `{"external_id":"` + id + `","ecf_type":"32","issue_date":"2026-11-14","currency":"DOP","payment_type":"cash",` +
		`"buyer":{"legal_name":"Consumidor Final"},"lines":[{"line_id":"1","description":"Café","quantity":"1","unit_price":"100.00","discount":null,` +
		`"item_kind":"product","billing_indicator":1,"taxes":[{"code":"ITBIS","label":"ITBIS 18%","rate_percent":"18"}]}],` +
		`"declared_totals":{"subtotal":"100.00","discount_total":"0.00","tax_total":"18.00","total":"118.00"}}`
}

func read(t *testing.T, text string) []*bulk.Line {
	t.Helper()
	lines, err := bulk.Read(strings.NewReader(text))
	must(t, err)
	return lines
}

func TestReadTakesLinesAndArrays(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"lines":               invoice("a") + "\n\n" + invoice("b"),
		"with a mark and CRs": "\ufeff" + invoice("a") + "\r\n\r\n" + invoice("b") + "\r\n",
		"array":               "[\n" + invoice("a") + ",\n" + invoice("b") + "]\n",
	} {
		lines := read(t, text)
		if len(lines) != 2 || lines[0].ExternalID != "a" || lines[1].ExternalID != "b" || !lines[0].Problem.IsZero() || !lines[1].Problem.IsZero() {
			t.Errorf("%s: %d lines, %+v", name, len(lines), lines[0])
		}
		if lines[0].Key() == lines[1].Key() || lines[0].Key() != read(t, invoice("a"))[0].Key() {
			t.Errorf("%s: the keys are %s and %s", name, lines[0].Key(), lines[1].Key())
		}
	}
}

func TestReadRefusesOtherFiles(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", " \n", "external_id,total\n", "[" + invoice("a"), `"text"`} {
		if lines, err := bulk.Read(strings.NewReader(text)); err == nil {
			t.Errorf("%q: %d lines", text, len(lines))
		}
	}
}

func TestReadNamesEveryProblem(t *testing.T) {
	t.Parallel()
	lines := read(t, strings.Join([]string{
		invoice("a"), strings.Replace(invoice("b"), `"DOP"`, `"XXX"`, 1), `{"external_id":"c"`, invoice("a"), "{}",
	}, "\n"))
	for i, want := range []string{"", "currency: ", "", "line 1 has the same external_id", "external_id: "} {
		if got := lines[i].Problem.String(); i != 2 && (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("line %d: %q, want %q", i+1, got, want)
		}
	}
	if lines[2].Problem.IsZero() {
		t.Error("JSON that does not end has no problem")
	}
}

// service is an API that keeps invoices by idempotency key.
type service struct {
	mu     sync.Mutex
	made   map[string]string // id by key
	fail   func(n int, key string) error
	n      int
	status client.Status
}

func (s *service) CreateInvoiceJSON(_ context.Context, key string, _ json.RawMessage, _ ...client.CallOption) (r client.Response[client.Invoice], err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	if s.fail != nil {
		if err := s.fail(s.n, key); err != nil {
			return r, err
		}
	}
	if s.made[key] == "" {
		s.made[key] = fmt.Sprintf("invoice-%d", len(s.made)+1)
	}
	r.Data.ID, r.Data.Status = s.made[key], client.Queued
	return r, nil
}

func (s *service) Invoice(context.Context, string, ...client.CallOption) (r client.Response[client.Invoice], err error) {
	r.Data.Status = s.status
	return r, nil
}

func openJournal(t *testing.T, path string) *bulk.Journal {
	t.Helper()
	j, err := bulk.OpenJournal(path, "http://a", "taxpayer")
	must(t, err)
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func TestARunThatEndsGoesOnWithoutASecondInvoice(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range 100 {
		text.WriteString(invoice(fmt.Sprint("x-", i)) + "\n")
	}
	lines := read(t, text.String())
	path := filepath.Join(t.TempDir(), "journal")
	stop := errors.New("the connection broke")
	s := &service{made: make(map[string]string), status: client.Accepted}
	for round := 1; ; round++ {
		limit := s.n + 13
		s.fail = func(n int, _ string) error {
			if n > limit {
				return stop
			}
			return nil
		}
		j := openJournal(t, path)
		sender := &bulk.Sender{API: s, Journal: j, Parallel: 4, Progress: func(bulk.Result) {}}
		err := sender.Send(t.Context(), lines)
		if err == nil {
			s.fail = nil
			must(t, sender.Wait(t.Context(), lines))
			for i, r := range bulk.Results(lines, j, lang.English) {
				if r.Line != i+1 || r.Status != "accepted" || r.InvoiceID == "" || r.Error != "" {
					t.Fatalf("%+v", r)
				}
			}
			break
		}
		if !errors.Is(err, stop) || round > 20 {
			t.Fatalf("round %d: %v", round, err)
		}
		must(t, j.Close())
		// A crash may cut the last line of the journal.
		content, err := os.ReadFile(path)
		must(t, err)
		must(t, os.WriteFile(path, content[:len(content)-7], 0o600))
	}
	if len(s.made) != len(lines) {
		t.Errorf("%d invoices were made of %d lines", len(s.made), len(lines))
	}
}

func TestARefusedInvoiceDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()
	lines := read(t, invoice("a")+"\n"+invoice("b")+"\n"+invoice("c"))
	s := &service{made: make(map[string]string)}
	s.fail = func(_ int, key string) error {
		if key == lines[1].Key() {
			return &client.Error{
				HTTPStatus: http.StatusConflict, Code: client.CodeExternalIDConflict, Message: "ya existe",
				Details: []client.Detail{{Field: "external_id", Message: "ya se usa"}}, RequestID: "req_1",
			}
		}
		return nil
	}
	j := openJournal(t, filepath.Join(t.TempDir(), "journal"))
	must(t, (&bulk.Sender{API: s, Journal: j, Parallel: 2, Language: lang.Spanish, Progress: func(bulk.Result) {}}).Send(t.Context(), lines))
	results := bulk.Results(lines, j, lang.English)
	if results[0].InvoiceID == "" || results[2].InvoiceID == "" || results[1].Status != bulk.Refused {
		t.Errorf("%+v", results)
	}
	if got, want := results[1].Error, "el servicio respondió 409 external_id_conflict: ya existe (external_id: ya se usa; 1 en total) [req_1]"; got != want {
		t.Errorf("the reason is %q, want %q", got, want)
	}
	// A wrong API key concerns every invoice.
	s.fail = func(int, string) error { return &client.Error{HTTPStatus: http.StatusUnauthorized, Message: "no"} }
	if err := (&bulk.Sender{API: s, Journal: j, Parallel: 2, Progress: func(bulk.Result) {}}).Send(t.Context(), lines); err == nil {
		t.Error("the sender went on without a valid key")
	}
}

func TestAJournalBelongsToOneTaxpayer(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	openJournal(t, path)
	if _, err := bulk.OpenJournal(path, "http://a", "another"); !errors.Is(err, bulk.ErrOtherJournal) {
		t.Errorf("error %v", err)
	}
	must(t, os.WriteFile(path, []byte("other text\n"), 0o600))
	if _, err := bulk.OpenJournal(path, "http://a", "taxpayer"); err == nil {
		t.Error("another file was taken as a journal")
	}
}

func TestReadCSVGroupsRowsIntoInvoices(t *testing.T) {
	t.Parallel()
	m, err := bulk.ParseMap([]byte(`{
		"columns": {"external_id": "Factura", "issue_date": "Fecha", "buyer.legal_name": "Cliente",
			"lines.description": "Producto", "lines.quantity": "Cantidad", "lines.unit_price": "Precio", "lines.billing_indicator": "Indicador"},
		"values": {"ecf_type": "32", "currency": "DOP", "payment_type": "cash", "lines.item_kind": "product", "lines.discount": null,
			"lines.taxes": [{"code": "ITBIS", "label": "ITBIS 18%", "rate_percent": "18"}]}}`))
	must(t, err)
	lines, err := bulk.ReadCSV(strings.NewReader("Factura;Fecha;Cliente;Producto;Cantidad;Precio;Indicador\r\n"+
		"F-1;2026-11-14;Ana Pérez;Café;2;50.00;1\r\n"+
		"F-1;2026-11-14;Ana Pérez;Azúcar;1;20.00;1\r\n"+
		"F-2;2026-11-14;Luis;Café;x;50.00;1\r\n"), m)
	must(t, err)
	if len(lines) != 2 || !lines[0].Problem.IsZero() || lines[0].Number != 2 || lines[1].Number != 4 || !strings.Contains(lines[1].Problem.String(), "lines.0.quantity") {
		t.Fatalf("%d lines: %+v, %+v", len(lines), lines[0], lines[1])
	}
	var got struct {
		Lines  []struct{ Description string } `json:"lines"`
		Totals map[string]string              `json:"declared_totals"`
	}
	must(t, json.Unmarshal(lines[0].Body, &got))
	want := map[string]string{"subtotal": "120.00", "discount_total": "0.00", "tax_total": "21.60", "total": "141.60"}
	if len(got.Lines) != 2 || !cmp.Equal(got.Totals, want) {
		t.Errorf("%s", lines[0].Body)
	}
}

// Only what its author can mend is said of an invoice whose totals cannot be computed.
func TestReadCSVNamesAnUnknownTaxAlone(t *testing.T) {
	t.Parallel()
	m, err := bulk.ParseMap([]byte(`{"columns": {"external_id": "Factura"}, "values": {"ecf_type": "32", "issue_date": "2026-11-14", "currency": "DOP", "payment_type": "cash",
		"buyer.legal_name": "Ana", "lines.description": "Café", "lines.item_kind": "product", "lines.quantity": "1", "lines.unit_price": "50.00", "lines.discount": null,
		"lines.taxes": [{"code": "ISC", "label": "ITBIS", "rate_percent": "18"}]}}`))
	must(t, err)
	lines, err := bulk.ReadCSV(strings.NewReader("Factura\nF-1\n"), m)
	if err != nil || len(lines) != 1 {
		t.Fatal(lines, err)
	}
	if got := lines[0].Problem.String(); !strings.HasPrefix(got, "lines.0.taxes.0.code: ") || strings.Contains(got, "declared_totals") {
		t.Errorf("the problem is %s", got)
	}
}

// A spreadsheet saves Windows-1252 unless it is told.
func TestReadCSVRefusesOtherEncodings(t *testing.T) {
	t.Parallel()
	m, err := bulk.ParseMap([]byte(`{"columns": {"external_id": "Factura", "buyer.legal_name": "Cliente"}}`))
	must(t, err)
	_, err = bulk.ReadCSV(strings.NewReader("Factura;Cliente\nF-1;Jose\nF-2;Jos\xe9 Pe\xf1a\n"), m)
	if err == nil || !strings.Contains(err.Error(), "line 3 ") || !strings.Contains(err.Error(), "UTF-8") {
		t.Errorf("a file in Windows-1252: %v, want an error that names line 3 and UTF-8", err)
	}
}

func TestReadCSVSaysWhichColumnIsMissing(t *testing.T) {
	t.Parallel()
	m, err := bulk.ParseMap([]byte(`{"columns": {"external_id": "Factura", "issue_date": "Fecha"}}`))
	must(t, err)
	_, err = bulk.ReadCSV(strings.NewReader("Factura,Dia\nF-1,2026-11-14\n"), m)
	if err == nil || !strings.Contains(err.Error(), `"Fecha" for issue_date`) || !strings.Contains(err.Error(), "Factura, Dia") {
		t.Errorf("error %v", err)
	}
	if _, err := bulk.ParseMap([]byte(`{"columns": {"issue_date": "Fecha"}}`)); err == nil {
		t.Error("a map without external_id was taken")
	}
	if _, err := bulk.ParseMap([]byte(`{"column": {}}`)); err == nil {
		t.Error("a map with an unknown member was taken")
	}
}

// must fails the test when err is not nil.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
