package ecf_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig/xmlsigtest"
)

// palmaClara is the issuer of the samples.
func palmaClara() ecf.Issuer {
	return ecf.Issuer{
		RNC:          "199000013",
		LegalName:    "Distribuidora Palma Clara, SRL",
		TradeName:    "Palma Clara",
		Address:      "Calle Los Framboyanes No. 12, Ensanche Ficticio",
		Municipality: "010100",
		Province:     "010000",
		Phones:       []string{"809-555-0112"},
		Email:        "facturacion@palmaclara.example",
		IncomeType:   "01",
	}
}

// A sample is a request and the document that it makes.
type sample struct {
	name    string
	minimal bool // only the required fields of the issuer, and no internal number
}

func samples() []sample {
	return []sample{
		{"01-ecf31-minimal", true},
		{"02-ecf31-mixed-rates-discounts", false},
		{"03-ecf31-credit-withholdings", false},
		{"04-ecf32-below-250k", false},
		{"05-ecf32-above-250k", false},
		{"07-ecf31-telecom-additional-taxes", false},
		{"08-ecf32-exempt-only", false},
	}
}

func (s sample) request(t testing.TB) []byte {
	t.Helper()
	raw := read(t, filepath.Join("..", "..", "fiscal", "testdata", s.name+".request.json"))
	if !s.minimal {
		return raw
	}
	var request map[string]any
	if err := json.Unmarshal(raw, &request); err != nil {
		t.Fatal(err)
	}
	request["external_id"] = "an identifier of more than twenty characters"
	raw, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// document returns the document of a sample, with the number and the time of the
// sample's XML.
func (s sample) document(t testing.TB) *ecf.Draft {
	t.Helper()
	want := string(read(t, s.name+".xml"))
	issuer := palmaClara()
	if s.minimal {
		issuer = ecf.Issuer{RNC: issuer.RNC, LegalName: issuer.LegalName, Address: issuer.Address, IncomeType: issuer.IncomeType}
	}
	number := ecf.Number{ENCF: must(fiscal.ParseENCF(between(t, want, "<eNCF>", "</eNCF>")))}
	if number.ENCF.Type() == fiscal.FiscalCredit {
		number.Expires = must(fiscal.ParseDate("2027-12-31"))
	}
	at := must(time.ParseInLocation("02-01-2006 15:04:05", between(t, want, "<FechaHoraFirma>", "</FechaHoraFirma>"), time.FixedZone("", -4*60*60)))
	d, err := ecf.New(issuer, number, invoice(t, s.request(t)), at)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDocumentsAreThoseOfTheSamples(t *testing.T) {
	t.Parallel()
	for _, s := range samples() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			d := s.document(t)
			if diff := cmp.Diff(indented(compact(string(read(t, s.name+".xml")))), indented(string(d.Unsigned()))); diff != "" {
				t.Errorf("document (-sample +made):\n%s", diff)
			}
			if err := d.Check(); err != nil {
				t.Errorf("Check() = %v", err)
			}
		})
	}
}

func TestSummaryIsThatOfTheSample(t *testing.T) {
	t.Parallel()
	d := samples()[3].document(t)
	code := must(ecf.NewSecurityCode("k7Qx+2mP"))
	xml, err := d.SignSummary(signer(t), code)
	if err != nil {
		t.Fatal(err)
	}
	signature := strings.Index(string(xml), "<Signature")
	made := string(xml[:signature]) + "</RFCE>"
	if diff := cmp.Diff(indented(compact(string(read(t, "06-rfce32-below-250k.xml")))), indented(made)); diff != "" {
		t.Errorf("summary (-sample +made):\n%s", diff)
	}
	if _, err := samples()[4].document(t).SignSummary(signer(t), code); err == nil {
		t.Error("a consumer invoice from the limit has a summary")
	}
}

func TestReadReturnsTheWrittenDocument(t *testing.T) {
	t.Parallel()
	for _, s := range samples() {
		d := s.document(t)
		xml, code, err := d.Sign(signer(t))
		if err != nil {
			t.Fatal(err)
		}
		got, gotCode := reread(t, xml)
		if diff := cmp.Diff(d.Complete(), got, cmp.AllowUnexported(fiscal.ENCF{}, fiscal.Date{})); diff != "" {
			t.Errorf("%s: read (-written +read):\n%s", s.name, diff)
		}
		if gotCode != code || !strings.Contains(string(xml), "<SignatureValue>"+code.String()) {
			t.Errorf("%s: security code %q, read as %q", s.name, code, gotCode)
		}
	}
}

func TestReadReturnsTheDocumentInEveryFormOfSignature(t *testing.T) {
	t.Parallel()
	leaf := xmlsigtest.Must(t, xmlsigtest.Options{})
	d := samples()[2].document(t)
	for _, f := range xmlsigtest.Forms() {
		got, _ := reread(t, f.Sign(t, leaf, string(d.Unsigned())))
		if diff := cmp.Diff(d.Complete(), got, cmp.AllowUnexported(fiscal.ENCF{}, fiscal.Date{})); diff != "" {
			t.Errorf("%s: read (-written +read):\n%s", f.Name, diff)
		}
	}
}

// A signed element of a namespace is none of the format.
func TestReadRefusesElementsOfANamespace(t *testing.T) {
	t.Parallel()
	leaf := xmlsigtest.Must(t, xmlsigtest.Options{})
	unsigned := string(samples()[0].document(t).Unsigned())
	for name, change := range map[string][2]string{
		"root":  {"<ECF>", `<ECF xmlns="urn:x">`},
		"total": {"<MontoTotal>", `<MontoTotal xmlns="urn:x">`},
		"line":  {"<Item>", `<Item xmlns="urn:x">`},
		"e-NCF": {"<eNCF>", `<eNCF xmlns="urn:x">`},
	} {
		changed := strings.Replace(unsigned, change[0], change[1], 1)
		if changed == unsigned {
			t.Fatalf("%s: nothing to change", name)
		}
		v, err := xmlsig.Verify(xmlsigtest.Form{}.Sign(t, leaf, changed), xmlsig.InvoiceLimits())
		if err != nil {
			t.Fatal(err)
		}
		if d, _, err := ecf.Read(v); err == nil {
			t.Errorf("%s of a namespace: read %+v", name, d)
		}
	}
}

// reread verifies a signed document and reads it.
func reread(t testing.TB, xml []byte) (*ecf.Document, ecf.SecurityCode) {
	t.Helper()
	v, err := xmlsig.Verify(xml, xmlsig.InvoiceLimits())
	if err != nil {
		t.Fatal(err)
	}
	d, code, err := ecf.Read(v)
	if err != nil {
		t.Fatal(err)
	}
	return d, code
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func invoice(t testing.TB, request []byte) *fiscal.Invoice {
	t.Helper()
	parsed, err := strictjson.Parse(request)
	if err != nil {
		t.Fatal(err)
	}
	inv, err := fiscal.New(fiscal.DecodeRequest(parsed))
	if err != nil {
		t.Fatal(err)
	}
	return inv
}

func between(t testing.TB, s, before, after string) string {
	t.Helper()
	_, rest, found := strings.Cut(s, before)
	text, _, closed := strings.Cut(rest, after)
	if !found || !closed {
		t.Fatalf("no %s in the sample", before)
	}
	return text
}

// compact removes the placeholder of the signature and the indentation from a
// sample.
func compact(s string) string {
	before, rest, _ := strings.Cut(s, "<Signature")
	_, after, _ := strings.Cut(rest, "</Signature>")
	var b strings.Builder
	for line := range strings.Lines(before + after) {
		b.WriteString(strings.TrimSpace(line))
	}
	return b.String()
}

// indented puts each element on its own line, so that differences are easy to
// read.
func indented(s string) string { return strings.ReplaceAll(s, "><", ">\n<") }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// signer is the identity that signs in tests.
func signer(t testing.TB) *xmlsig.Identity {
	t.Helper()
	return xmlsigtest.Must(t, xmlsigtest.Options{}).Identity
}
