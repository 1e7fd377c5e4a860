package reply_test

import (
	"crypto/x509"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fiscalhub/fiscalhub/internal/reply"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig/xmlsigtest"
)

const receiptXML = `<ARECF xmlns:xsd="http://www.w3.org/2001/XMLSchema"><DetalleAcusedeRecibo><Version>1.0</Version><RNCEmisor>` + issuer +
	`</RNCEmisor><RNCComprador>` + buyer + `</RNCComprador><eNCF>` + encf + `</eNCF><Estado>0</Estado>` +
	`<FechaHoraAcuseRecibo>08-10-2026 10:00:00</FechaHoraAcuseRecibo></DetalleAcusedeRecibo></ARECF>`

const invoiceXML = `<ECF><Encabezado><Version>1.0</Version><IdDoc><TipoeCF>31</TipoeCF><eNCF>` + encf + `</eNCF></IdDoc><Emisor><RNCEmisor>` + issuer +
	`</RNCEmisor></Emisor><Comprador><RNCComprador>` + buyer + `</RNCComprador></Comprador></Encabezado></ECF>`

func roots(none bool) *x509.CertPool {
	if none {
		return nil
	}
	return peer().CA.Pool()
}

func motive(code string) []string {
	return []string{"<Estado>0</Estado>", "<Estado>1</Estado><CodigoMotivoNoRecibido>" + code + "</CodigoMotivoNoRecibido>"}
}

func TestReadReceipt(t *testing.T) {
	t.Parallel()
	const good = issuer + " " + encf + " " + buyer + " 00112345678 "
	for _, c := range []struct {
		name    string
		changes []string
		want    string // "" when it is refused
	}{
		{"received", nil, good + "true "},
		{"received, with an empty motive", []string{"</Estado>", "</Estado><CodigoMotivoNoRecibido></CodigoMotivoNoRecibido>"}, good + "true "},
		{"received, with motive 0", []string{"</Estado>", "</Estado><CodigoMotivoNoRecibido>0</CodigoMotivoNoRecibido>"}, good + "true "},
		{"not received", motive("4"), good + "false 4"},
		{"not received, without a motive", []string{"<Estado>0", "<Estado>1"}, good + "false "},
		{"not received, with an empty motive", motive(""), good + "false "},
		{"Version 1", []string{"1.0", "1"}, good + "true "},
		{"white space around values", []string{issuer, " " + issuer + "\n"}, good + "true "},
		{"a time of another form", []string{"08-10-2026 10:00:00", "8/10/2026 10:00"}, good + "true "},

		{"received and not received", []string{"</Estado>", "</Estado><CodigoMotivoNoRecibido>3</CodigoMotivoNoRecibido>"}, ""},
		{"both states", []string{"</Estado>", "</Estado><Estado>1</Estado>"}, ""},
		{"another state", []string{"<Estado>0", "<Estado>2"}, ""},
		{"no state", []string{"<Estado>0</Estado>", ""}, ""},
		{"motive that is a text", motive("xx"), ""},
		{"motive of three digits", motive("100"), ""},
		{"number of another form", []string{encf, "E31"}, ""},
		{"no number", []string{"<eNCF>" + encf + "</eNCF>", ""}, ""},
		{"no time", []string{"<FechaHoraAcuseRecibo>08-10-2026 10:00:00</FechaHoraAcuseRecibo>", ""}, ""},
		{"another root", []string{"<ARECF", "<ACECF", "</ARECF", "</ACECF"}, ""},
		{"the detail in capitals", []string{"<DetalleAcusede", "<DetalleAcuseDe", "</DetalleAcusede", "</DetalleAcuseDe"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			document := sign(t, peer().Identity, edit(t, receiptXML, c.changes...))
			r, err := reply.ReadAcknowledgement([]byte(document), peer().CA.Pool(), time.Now())
			if c.want == "" {
				wantKind(t, err, reply.ErrMalformed)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(r.RNC, " ", r.ENCF, " ", r.BuyerRNC, " ", r.Signer, " ", r.Received, " ", r.Reason); got != c.want || declaration+string(r.XML) != document {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestAcknowledgeWritesAndSigns(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 2, 3, 4, 0, time.UTC)
	for _, c := range []struct {
		reason, state string
	}{
		{"", "<Estado>0</Estado>"},
		{reply.ReasonSpecification, "<Estado>1</Estado><CodigoMotivoNoRecibido>1</CodigoMotivoNoRecibido>"},
		{reply.ReasonSignature, "<Estado>1</Estado><CodigoMotivoNoRecibido>2</CodigoMotivoNoRecibido>"},
		{reply.ReasonDuplicate, "<Estado>1</Estado><CodigoMotivoNoRecibido>3</CodigoMotivoNoRecibido>"},
		{reply.ReasonBuyer, "<Estado>1</Estado><CodigoMotivoNoRecibido>4</CodigoMotivoNoRecibido>"},
	} {
		document, err := reply.Acknowledge(peer().Identity, reply.Acknowledgement{
			IssuerRNC: issuer, BuyerRNC: buyer, ENCF: encf, Received: c.reason == "", Reason: c.reason, At: at,
		})
		if err != nil {
			t.Fatal(err)
		}
		want := `<?xml version="1.0" encoding="utf-8"?><ARECF><DetalleAcusedeRecibo><Version>1.0</Version><RNCEmisor>` + issuer + `</RNCEmisor><RNCComprador>` + buyer +
			`</RNCComprador><eNCF>` + encf + `</eNCF>` + c.state + `<FechaHoraAcuseRecibo>31-12-2025 22:03:04</FechaHoraAcuseRecibo></DetalleAcusedeRecibo><Signature `
		if got := string(document[:min(len(want), len(document))]); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		if err := xmlsigtest.Xmlsec(t, peer().CA, document); err != nil {
			t.Error(err)
		}
		if err := validates(t, "arecf.xsd", string(document)); err != nil {
			t.Errorf("the schema says %v", err)
		}
	}
}

func TestReadReceiptReturnsWhatAcknowledgeWrote(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := func(name, good string) string {
			return rapid.OneOf(rapid.StringMatching(good), rapid.StringMatching(`[0-9E]{0,14}`)).Draw(t, name)
		}
		a := reply.Acknowledgement{
			IssuerRNC: text("issuer", `[0-9]{9}`), BuyerRNC: text("buyer", `[0-9]{11}`), ENCF: text("encf", `E[0-9]{12}`),
			Received: rapid.Bool().Draw(t, "received"), Reason: rapid.StringMatching(`[0-5]?`).Draw(t, "reason"),
			At: time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "at"), 0),
		}
		document, err := reply.Acknowledge(peer().Identity, a)
		if err != nil {
			return
		}
		r, err := reply.ReadAcknowledgement(document, peer().CA.Pool(), time.Now())
		if err != nil {
			t.Fatalf("ReadReceipt refuses an acknowledgement of Acknowledge: %v\n%s", err, document)
		}
		if r.RNC != a.IssuerRNC || r.BuyerRNC != a.BuyerRNC || r.ENCF != a.ENCF || r.Received != a.Received || r.Reason != a.Reason {
			t.Fatalf("wrote %+v, read %+v", a, r)
		}
	})
}

func TestAcknowledgeRefusesInvalidValues(t *testing.T) {
	t.Parallel()
	good := reply.Acknowledgement{IssuerRNC: issuer, BuyerRNC: buyer, ENCF: encf, Reason: "1"}
	for name, change := range map[string]func(*reply.Acknowledgement){
		"no issuer":                      func(a *reply.Acknowledgement) { a.IssuerRNC = "" },
		"no buyer":                       func(a *reply.Acknowledgement) { a.BuyerRNC = "x" },
		"no number":                      func(a *reply.Acknowledgement) { a.ENCF = "E31" },
		"not received, without a motive": func(a *reply.Acknowledgement) { a.Reason = "" },
		"not received, motive 5":         func(a *reply.Acknowledgement) { a.Reason = "5" },
		"received, with a motive":        func(a *reply.Acknowledgement) { a.Received = true },
	} {
		a := good
		change(&a)
		if _, err := reply.Acknowledge(peer().Identity, a); err == nil {
			t.Errorf("%s: signed", name)
		}
	}
}

func TestReadHeadReadsOnlySignedDocuments(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		changes []string
		refused error
	}{
		{"e-CF", nil, nil},
		{"another document with a head", []string{"<ECF", "<RFCE", "</ECF", "</RFCE"}, reply.ErrMalformed},
		{"no buyer", []string{"<RNCComprador>" + buyer + "</RNCComprador>", "<RazonSocialComprador>x</RazonSocialComprador>"}, reply.ErrMalformed},
		{"no issuer", []string{issuer, ""}, reply.ErrMalformed},
		{"number of another form", []string{encf, "B0100000001"}, reply.ErrMalformed},
		{"number elsewhere", []string{"<IdDoc>", "<Id>", "</IdDoc>", "</Id>"}, reply.ErrMalformed},
		{"head elsewhere", []string{"<ECF>", "<ECF><ECF>", "</ECF>", "</ECF></ECF>"}, reply.ErrMalformed},
		{"approval", []string{invoiceXML, responseXML}, reply.ErrMalformed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			document := edit(t, invoiceXML, c.changes...)
			_, err := reply.ReadHead([]byte(document), peer().CA.Pool(), time.Now())
			wantKind(t, err, reply.ErrSignature)
			h, err := reply.ReadHead([]byte(sign(t, peer().Identity, document)), peer().CA.Pool(), time.Now())
			wantKind(t, err, c.refused)
			if want := (reply.Head{IssuerRNC: issuer, BuyerRNC: buyer, ENCF: encf, Signer: "00112345678"}); err == nil && h != want {
				t.Errorf("%+v", h)
			}
		})
	}
}
