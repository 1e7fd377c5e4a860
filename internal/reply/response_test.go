package reply_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/reply"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

const responseXML = `<ACECF xmlns:xsd="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><DetalleAprobacionComercial>` +
	`<Version>1.0</Version><RNCEmisor>` + issuer + `</RNCEmisor><eNCF>` + encf + `</eNCF><FechaEmision>29-02-2028</FechaEmision><MontoTotal>4425.50</MontoTotal>` +
	`<RNCComprador>` + buyer + `</RNCComprador><Estado>1</Estado><FechaHoraAprobacionComercial>01-03-2028 23:59:59</FechaHoraAprobacionComercial>` +
	`</DetalleAprobacionComercial></ACECF>`

func rejected(reason string) []string {
	return []string{"<Estado>1</Estado>", "<Estado>2</Estado><DetalleMotivoRechazo>" + reason + "</DetalleMotivoRechazo>"}
}

func TestReadResponse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		changes []string
		state   string // accepted, or the reason
		total   string
		lenient bool // the schema refuses it
	}{
		{name: "accepted", state: "accepted", total: "4425.5"},
		{name: "rejected", changes: rejected("Precio &amp; cantidad"), state: "Precio & cantidad", total: "4425.5"},
		{name: "rejected, with the longest reason", changes: rejected(strings.Repeat("ñ", 250)), state: strings.Repeat("ñ", 250), total: "4425.5"},
		{name: "rejected, without a reason", changes: []string{"<Estado>1", "<Estado>2"}, state: "", total: "4425.5"},
		{name: "accepted, with an empty reason", changes: []string{"</Estado>", "</Estado><DetalleMotivoRechazo></DetalleMotivoRechazo>"}, state: "accepted", total: "4425.5"},
		{name: "amount without decimals", changes: []string{"4425.50", "4425"}, state: "accepted", total: "4425", lenient: true},
		{name: "amount with one decimal", changes: []string{"4425.50", "4425.5"}, state: "accepted", total: "4425.5", lenient: true},
		{name: "largest amount", changes: []string{"4425.50", "9999999999999999.99"}, state: "accepted", total: "9999999999999999.99"},
		{name: "Version 1", changes: []string{"1.0", "1"}, state: "accepted", total: "4425.5", lenient: true},
		{name: "no namespaces", changes: []string{` xmlns:xsd="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"`, ""}, state: "accepted", total: "4425.5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			document := sign(t, peer().Identity, edit(t, responseXML, c.changes...))
			r, err := reply.ReadResponse([]byte(document), peer().CA.Pool(), time.Now())
			if err != nil {
				t.Fatal(err)
			}
			state := r.Reason
			if r.Accepted {
				state += "accepted"
			}
			got := fmt.Sprint(r.IssuerRNC, r.ENCF, r.IssueDate, r.BuyerRNC, r.Signer, r.At.UTC().Format(time.RFC3339))
			if want := issuer + encf + "2028-02-29" + buyer + "00112345678" + "2028-03-02T03:59:59Z"; strings.ReplaceAll(got, " ", "") != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if state != c.state || r.Total.String() != c.total || declaration+string(r.XML) != document {
				t.Errorf("state %q, total %s", state, r.Total)
			}
			if err := validates(t, "acecf.xsd", document); (err != nil) != c.lenient {
				t.Errorf("the schema says %v", err)
			}
		})
	}
}

func TestReadResponseRefusesStructure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		changes []string
	}{
		{"another root", []string{"<ACECF", "<ARECF", "</ACECF", "</ARECF"}},
		{"another detail", []string{"<DetalleAprobacionComercial", "<DetalleAprobacion", "</DetalleAprobacionComercial", "</DetalleAprobacion"}},
		{"two details", []string{"</DetalleAprobacionComercial>", "</DetalleAprobacionComercial><DetalleAprobacionComercial></DetalleAprobacionComercial>"}},
		{"something beside the detail", []string{"</DetalleAprobacionComercial>", "</DetalleAprobacionComercial><Otro>1</Otro>"}},
		{"no version", []string{"<Version>1.0</Version>", ""}},
		{"another version", []string{"1.0", "1.1"}},
		{"fields in another order", []string{"<RNCEmisor>" + issuer + "</RNCEmisor><eNCF>" + encf + "</eNCF>", "<eNCF>" + encf + "</eNCF><RNCEmisor>" + issuer + "</RNCEmisor>"}},
		{"a field twice", []string{"</RNCEmisor>", "</RNCEmisor><RNCEmisor>" + issuer + "</RNCEmisor>"}},
		{"Estado twice", []string{"<Estado>1</Estado>", "<Estado>1</Estado><Estado>2</Estado>"}},
		{"a field of others", []string{"<Estado>", "<Nota>x</Nota><Estado>"}},
		{"a field after the last", []string{"</FechaHoraAprobacionComercial>", "</FechaHoraAprobacionComercial><Estado>2</Estado>"}},
		{"elements in a field", []string{encf, "<a>" + encf + "</a>"}},
		{"elements in the reason", rejected("<a>1</a>")},
		{"no issuer", []string{"<RNCEmisor>" + issuer + "</RNCEmisor>", ""}},
		{"issuer empty", []string{issuer, ""}},
		{"issuer of 10 digits", []string{issuer, issuer + "1"}},
		{"issuer with a hyphen", []string{issuer, "1-3188068"}},
		{"issuer of other digits", []string{issuer, "13188068٣"}},
		{"buyer of 8 digits", []string{buyer, "13188068"}},
		{"number of 12", []string{encf, encf[:12]}},
		{"number of 14", []string{encf, encf + "0"}},
		{"number of another letter", []string{"E31", "B31"}},
		{"number in small letters", []string{"E31", "e31"}},
		{"day that is none", []string{"29-02-2028", "30-02-2028"}},
		{"date of another order", []string{"29-02-2028", "2028-02-29"}},
		{"date without zeros", []string{"29-02-2028", "9-2-2028"}},
		{"date with slashes", []string{"29-02-2028", "29/02/2028"}},
		{"amount with three decimals", []string{"4425.50", "4425.500"}},
		{"amount of 17 digits", []string{"4425.50", "10000000000000000.00"}},
		{"amount of 17 digits, without decimals", []string{"4425.50", "10000000000000000"}},
		{"amount with a sign", []string{"4425.50", "-4425.50"}},
		{"amount with an exponent", []string{"4425.50", "4e3"}},
		{"amount with a comma", []string{"4425.50", "4,425.50"}},
		{"amount that ends in a point", []string{"4425.50", "4425."}},
		{"amount with zeros before", []string{"4425.50", "04425.50"}},
		{"amount that is none", []string{"4425.50", "NaN"}},
		{"no state", []string{"<Estado>1</Estado>", ""}},
		{"another state", []string{"<Estado>1", "<Estado>3"}},
		{"state 0", []string{"<Estado>1", "<Estado>0"}},
		{"state 01", []string{"<Estado>1", "<Estado>01"}},
		{"accepted, with a reason", []string{"</Estado>", "</Estado><DetalleMotivoRechazo>x</DetalleMotivoRechazo>"}},
		{"reason too long", rejected(strings.Repeat("ñ", 251))},
		{"reason twice", rejected("x</DetalleMotivoRechazo><DetalleMotivoRechazo>y")},
		{"reason before the state", []string{"<Estado>1", "<DetalleMotivoRechazo>x</DetalleMotivoRechazo><Estado>2"}},
		{"no time", []string{"<FechaHoraAprobacionComercial>01-03-2028 23:59:59</FechaHoraAprobacionComercial>", ""}},
		{"date without a time", []string{"01-03-2028 23:59:59", "01-03-2028"}},
		{"hour 24", []string{"23:59:59", "24:00:00"}},
		{"12-hour clock", []string{"23:59:59", "11:59:59 PM"}},
		{"time with a zone", []string{"23:59:59", "23:59:59Z"}},
		{"time without zeros", []string{"23:59:59", "3:59:59"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			document := sign(t, peer().Identity, edit(t, responseXML, c.changes...))
			_, err := reply.ReadResponse([]byte(document), peer().CA.Pool(), time.Now())
			wantKind(t, err, reply.ErrMalformed)
		})
	}
}

// wantKind checks that an error is of one kind and of no other.
func wantKind(t *testing.T, err, kind error) {
	t.Helper()
	for _, k := range []error{reply.ErrMalformed, reply.ErrSignature, reply.ErrUntrusted} {
		if errors.Is(err, k) != (k == kind) { //nolint:errorlint // the sentinel itself
			t.Errorf("error %v, want %v", err, kind)
		}
	}
}

var signings = []signing{
	{name: "trusted certificate", sign: signedBy(func(*testing.T) *xmlsig.Identity { return peer().Identity })},
	{name: "no trusted root", sign: signedBy(func(*testing.T) *xmlsig.Identity { return peer().Identity }), noRoots: true, refused: reply.ErrUntrusted},
	{name: "certificate of another authority", sign: signedBy(stranger), refused: reply.ErrUntrusted},
	{name: "certificate expired", sign: signedBy(expired), refused: reply.ErrUntrusted},
	{name: "not signed", sign: func(_ *testing.T, document string) string { return document }, refused: reply.ErrSignature},
	{name: "changed afterwards", sign: after(issuer, "131880682"), refused: reply.ErrSignature},
	{name: "indented afterwards", sign: after("<Version", "\n  <Version")},
	{name: "spaces within a value afterwards", sign: after(issuer, " "+issuer), refused: reply.ErrSignature},
	{name: "certificate of another", sign: func(t *testing.T, document string) string {
		mine, theirs := sign(t, peer().Identity, document), sign(t, expired(t), document)
		return edit(t, mine, certificateIn(mine), certificateIn(theirs))
	}, refused: reply.ErrUntrusted}, // of the same key, so the signature matches
	{name: "two signatures", sign: func(t *testing.T, document string) string {
		document = sign(t, peer().Identity, document)
		start, end := strings.Index(document, "<Signature "), strings.Index(document, "</Signature>")+len("</Signature>")
		return document[:end] + document[start:]
	}, refused: reply.ErrSignature},
	{name: "document type", sign: after("?>", "?><!DOCTYPE a>"), refused: reply.ErrMalformed},
	{name: "comment", sign: after(issuer, "1<!-- -->31880681"), refused: reply.ErrMalformed},
	{name: "CDATA", sign: after(issuer, "<![CDATA["+issuer+"]]>"), refused: reply.ErrMalformed},
	{name: "cut short", sign: func(t *testing.T, document string) string {
		document = sign(t, peer().Identity, document)
		return document[:len(document)-1]
	}, refused: reply.ErrMalformed},
	{name: "empty", sign: func(*testing.T, string) string { return "" }, refused: reply.ErrMalformed},
}

func signedBy(who func(*testing.T) *xmlsig.Identity) func(*testing.T, string) string {
	return func(t *testing.T, document string) string { return sign(t, who(t), document) }
}

func after(old, with string) func(*testing.T, string) string {
	return func(t *testing.T, document string) string {
		return edit(t, sign(t, peer().Identity, document), old, with)
	}
}

func certificateIn(document string) string {
	_, rest, _ := strings.Cut(document, "<X509Certificate>")
	certificate, _, _ := strings.Cut(rest, "<")
	return certificate
}

func TestOnlyTrustedSignaturesAreBelieved(t *testing.T) {
	t.Parallel()
	readers := map[string]struct {
		document string
		read     func(raw []byte, noRoots bool) error
	}{
		"response": {responseXML, func(raw []byte, noRoots bool) error {
			_, err := reply.ReadResponse(raw, roots(noRoots), time.Now())
			return err
		}},
		"receipt": {receiptXML, func(raw []byte, noRoots bool) error {
			_, err := reply.ReadAcknowledgement(raw, roots(noRoots), time.Now())
			return err
		}},
		"head": {invoiceXML, func(raw []byte, noRoots bool) error {
			_, err := reply.ReadHead(raw, roots(noRoots), time.Now())
			return err
		}},
	}
	for kind, r := range readers {
		for _, c := range signings {
			t.Run(kind+", "+c.name, func(t *testing.T) {
				t.Parallel()
				wantKind(t, r.read([]byte(c.sign(t, r.document)), c.noRoots), c.refused)
			})
		}
	}
}

// Replies have small limits, and an invoice has large ones.
func TestSizeLimits(t *testing.T) {
	t.Parallel()
	padded := func(document string, size int) []byte {
		return append([]byte(sign(t, peer().Identity, document)), strings.Repeat(" ", size)...)
	}
	pool := peer().CA.Pool()
	_, err := reply.ReadResponse(padded(responseXML, 256<<10), pool, time.Now())
	wantKind(t, err, reply.ErrMalformed)
	_, err = reply.ReadAcknowledgement(padded(receiptXML, 256<<10), pool, time.Now())
	wantKind(t, err, reply.ErrMalformed)
	if h, err := reply.ReadHead(padded(invoiceXML, 256<<10), pool, time.Now()); err != nil {
		t.Errorf("%+v, %v", h, err)
	}
	_, err = reply.ReadHead(padded(invoiceXML, 8<<20), pool, time.Now())
	wantKind(t, err, reply.ErrMalformed)
}

// Anyone can pad a reply. What is kept is its canonical form, which says the same and
// verifies. A reply that its signer has padded is refused.
func TestRepliesAreKeptInCanonicalForm(t *testing.T) {
	t.Parallel()
	const most = 32 << 10
	spaces := strings.Repeat(" ", 200<<10)
	pool := peer().CA.Pool()
	plain := sign(t, peer().Identity, responseXML)
	want, err := reply.ReadResponse([]byte(plain), pool, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for name, document := range map[string]string{
		"after the root":   plain + spaces,
		"between elements": edit(t, plain, "<Estado>", spaces+"<Estado>"),
		"in the signature": edit(t, plain, "<KeyInfo>", spaces+"<KeyInfo>"),
	} {
		got, err := reply.ReadResponse([]byte(document), pool, time.Now())
		if err != nil || string(got.XML) != string(want.XML) {
			t.Errorf("%s: %d bytes are kept, %v; want %d", name, len(got.XML), err, len(want.XML))
		}
	}
	again, err := reply.ReadResponse(want.XML, pool, time.Now())
	if diff := cmp.Diff(want, again, cmp.Comparer(fiscal.Decimal.Equal), cmp.Comparer(func(a, b fiscal.Date) bool { return a == b })); err != nil || diff != "" {
		t.Errorf("what is kept reads otherwise: %v\n%s", err, diff)
	}
	for _, document := range []string{
		edit(t, responseXML, "<Version>", "<Version>"+spaces),
		edit(t, responseXML, "</MontoTotal>", spaces[:most]+"</MontoTotal>"),
	} {
		_, err := reply.ReadResponse([]byte(sign(t, peer().Identity, document)), pool, time.Now())
		wantKind(t, err, reply.ErrMalformed)
	}
	receipt, err := reply.ReadAcknowledgement([]byte(sign(t, peer().Identity, receiptXML)+spaces), pool, time.Now())
	if err != nil || len(receipt.XML) > most/4 {
		t.Errorf("an acknowledgement: %d bytes are kept, %v", len(receipt.XML), err)
	}
}

// A stranger's text must not control the terminal of the person who reads it.
func TestTheReasonHasNoControlCharacters(t *testing.T) {
	t.Parallel()
	document := sign(t, peer().Identity, edit(t, responseXML, rejected("Precio&#10;alto\u009b2Jñ")...))
	r, err := reply.ReadResponse([]byte(document), peer().CA.Pool(), time.Now())
	if err != nil || r.Reason != "Precio alto 2Jñ" {
		t.Errorf("%q, %v", r.Reason, err)
	}
}
