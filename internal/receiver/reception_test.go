package receiver_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/receiver"
	"github.com/fiscalhub/fiscalhub/internal/reply"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig/xmlsigtest"
)

// A verified document gets a signed answer that names what the document says.
func TestReceptionAnswersNotReceived(t *testing.T) {
	t.Parallel()
	good := sign(t, peer().Identity, invoiceXML)
	for name, document := range map[string]string{
		"signed":                      good,
		"signed, indented afterwards": edit(t, good, "<Emisor>", "\n<Emisor>"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			a := e.post(receptionPath, document)
			if a.status != http.StatusOK || a.header.Get("Content-Type") != "application/xml" {
				t.Fatalf("%d %v %s", a.status, a.header, a.body)
			}
			r, err := reply.ReadAcknowledgement([]byte(a.body), own().CA.Pool(), e.now())
			if err != nil {
				t.Fatal(err)
			}
			if r.Received || r.Reason != "1" || r.RNC != supplier || r.BuyerRNC != ours || r.ENCF != encf || r.Signer != "00200000001" {
				r.XML = nil
				t.Errorf("%+v", r)
			}
			if err := xmlsigtest.Xmlsec(t, own().CA, []byte(a.body)); err != nil {
				t.Error(err)
			}
			if !strings.Contains(a.body, ">"+e.now().In(time.FixedZone("", -4*3600)).Format("02-01-2006 15:04:05")+"<") {
				t.Errorf("the wrong time in %s", a.body)
			}
			if len(e.responses) > 0 || len(e.used) > 0 {
				t.Error("something was stored")
			}
		})
	}
}

// A document without a verified signature of a trusted signer gets no signature of our
// taxpayer, for any issuer and number that it names. The answer does not say either
// whether the buyer that it names is one of ours.
func TestReceptionSignsNothingForAnUnverifiedDocument(t *testing.T) {
	t.Parallel()
	good := sign(t, peer().Identity, invoiceXML)
	for name, document := range map[string]string{
		"not signed":             invoiceXML,
		"changed after signing":  edit(t, good, supplier, "131880682"),
		"untrusted signature":    sign(t, own().Identity, invoiceXML), // its authority is not trusted
		"certificate expired":    sign(t, xmlsigtest.Must(t, xmlsigtest.Options{CA: peer().CA, NotAfter: time.Now().Add(-time.Minute)}).Identity, invoiceXML),
		"signature first":        signatureFirst(good),
		"another root":           sign(t, peer().Identity, edit(t, invoiceXML, "<ECF>", "<FCE>", "</ECF>", "</FCE>")),
		"not signed, for nobody": edit(t, invoiceXML, ours, buyer),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			a := e.post(receptionPath, document)
			if a.status != http.StatusBadRequest || strings.Contains(a.body, "ARECF") || e.calls > 0 {
				t.Fatalf("%d %s, after %d calls for a taxpayer or an identity", a.status, a.body, e.calls)
			}
			a.message(t)
		})
	}
}

func signatureFirst(document string) string {
	start, end := strings.Index(document, "<Signature "), strings.Index(document, "</Signature>")+len("</Signature>")
	signature := document[start:end]
	return strings.Replace(document[:start]+document[end:], "<ECF>", "<ECF>"+signature, 1)
}

func TestWithoutRootsNoSignatureIsTrusted(t *testing.T) {
	t.Parallel()
	e := newEnv(t, func(o *receiver.Options) { o.Roots = nil })
	a := e.post(receptionPath, sign(t, peer().Identity, invoiceXML))
	if a.status != http.StatusBadRequest || strings.Contains(a.body, "ARECF") {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := e.post(approvalPath, sign(t, peer().Identity, responseXML)); a.status != http.StatusBadRequest {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := e.post(tokenPath, sign(t, peer().Identity, e.seed())); a.status != http.StatusBadRequest {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestReceptionRefusesInvalidDocuments(t *testing.T) {
	t.Parallel()
	for name, document := range map[string]string{
		"an unknown buyer":  sign(t, peer().Identity, edit(t, invoiceXML, ours, buyer)),
		"no buyer":          sign(t, peer().Identity, edit(t, invoiceXML, "<RNCComprador>"+ours+"</RNCComprador>", "<x>1</x>")),
		"no number":         sign(t, peer().Identity, edit(t, invoiceXML, encf, "E31")),
		"no issuer":         sign(t, peer().Identity, edit(t, invoiceXML, supplier, "x")),
		"a response":        sign(t, peer().Identity, responseXML),
		"empty":             "",
		"not XML":           "hola",
		"cut short":         invoiceXML[:100],
		"another encoding":  `<?xml version="1.0" encoding="utf-16"?>` + invoiceXML,
		"document type":     `<!DOCTYPE ECF>` + invoiceXML,
		"too large":         invoiceXML + strings.Repeat(" ", 8<<20),
		"much too large":    strings.Repeat("<a>", 4<<20),
		"too many elements": "<ECF>" + strings.Repeat("<a/>", 64_000) + invoiceXML[5:],
		"a nested document": "<ECF>" + invoiceXML + "</ECF>",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			body, kind := form(part{`form-data; name="xml"; filename="a.xml"`, "text/xml", document})
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, receptionPath, body)
			r.Header.Set("Content-Type", kind)
			answer := e.serve(r, http.StatusBadRequest)
			result{status: answer.Code, body: answer.Body.String()}.message(t)
			if e.calls > 1 {
				t.Error("the receiver asked for an identity")
			}
		})
	}
}

func TestReceptionIsUnavailableWithoutCertificateOrDatabase(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*env){
		"no certificate": func(e *env) { e.identityErr = errors.New("the taxpayer has no certificate") },
		"no database":    func(e *env) { e.taxpayerErr = errors.New("down") },
	} {
		e := newEnv(t)
		fail(e)
		a := e.post(receptionPath, sign(t, peer().Identity, invoiceXML))
		if a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" || strings.Contains(a.body, "down") {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
}

func TestReceptionAcceptsALargeDocument(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	large := sign(t, peer().Identity, edit(t, invoiceXML, "</Encabezado>", "</Encabezado><DetallesItems>"+
		strings.Repeat("<Item><NombreItem>"+strings.Repeat("x", 80)+"</NombreItem></Item>", 30_000)+"</DetallesItems>"))
	if len(large) > xmlsig.InvoiceLimits().Bytes {
		t.Fatalf("%d bytes", len(large))
	}
	if a := e.post(receptionPath, large); a.status != http.StatusOK || !strings.Contains(a.body, "<CodigoMotivoNoRecibido>1<") {
		t.Errorf("%d %s", a.status, a.body)
	}
}
