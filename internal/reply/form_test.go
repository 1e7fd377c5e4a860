package reply_test

import (
	"crypto/x509"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/reply"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig/xmlsigtest"
)

// Acknowledgements, commercial responses and invoices are believed in every form
// of signature that other software makes, and refused in each when they were
// changed.
func TestRepliesInEveryFormOfSignatureAreBelieved(t *testing.T) {
	t.Parallel()
	intermediate, err := peer().CA.Intermediate("Autoridad Intermedia")
	if err != nil {
		t.Fatal(err)
	}
	under := xmlsigtest.Must(t, xmlsigtest.Options{CA: intermediate})
	for _, f := range xmlsigtest.Forms() {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			checkBelieved(t, f, peer())
		})
	}
	for _, f := range []xmlsigtest.Form{
		{Name: "certificate chain"},
		{Name: "certificate chain, exclusive", Method: xmlsigtest.Exclusive, Transform: xmlsigtest.Exclusive, Prefix: "ds"},
	} {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			checkBelieved(t, f, under)
		})
	}
}

func checkBelieved(t *testing.T, f xmlsigtest.Form, leaf *xmlsigtest.Leaf) {
	t.Helper()
	roots, now := peer().CA.Pool(), time.Now()
	// The templates of some forms declare the namespaces of the root again.
	plain := func(document string) string {
		return strings.NewReplacer(` xmlns:xsd="http://www.w3.org/2001/XMLSchema"`, "", ` xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"`, "").Replace(document)
	}

	signed := f.Sign(t, leaf, plain(receiptXML))
	a, err := reply.ReadAcknowledgement(signed, roots, now)
	if err != nil || !a.Received || a.ENCF != encf || a.RNC != issuer || a.BuyerRNC != buyer || a.Signer != "00112345678" {
		t.Errorf("acknowledgement %+v, %v", a, err)
	}
	_, err = reply.ReadAcknowledgement([]byte(edit(t, string(signed), "<Estado>0", "<Estado>1")), roots, now)
	wantKind(t, err, reply.ErrSignature)

	signed = f.Sign(t, leaf, plain(responseXML))
	r, err := reply.ReadResponse(signed, roots, now)
	if err != nil || !r.Accepted || r.ENCF != encf || r.IssuerRNC != issuer || r.BuyerRNC != buyer || r.Total.String() != "4425.5" || r.Signer != "00112345678" {
		t.Errorf("response %+v, %v", r, err)
	}
	_, err = reply.ReadResponse([]byte(edit(t, string(signed), "<Estado>1", "<Estado>2")), roots, now)
	wantKind(t, err, reply.ErrSignature)

	h, err := reply.ReadHead(f.Sign(t, leaf, plain(invoiceXML)), roots, now)
	if err != nil || h.ENCF != encf || h.IssuerRNC != issuer || h.BuyerRNC != buyer {
		t.Errorf("head %+v, %v", h, err)
	}
}

// The formats have no namespace, so signed elements of a namespace are none of
// theirs.
func TestElementsOfANamespaceAreNotThoseOfTheFormat(t *testing.T) {
	t.Parallel()
	for name, changes := range map[string][]string{
		"default namespace on the root":     {`<ACECF `, `<ACECF xmlns="urn:x" `},
		"prefix on a field":                 {`<Estado>1</Estado>`, `<x:Estado xmlns:x="urn:x">1</x:Estado>`},
		"default namespace on a field":      {`<Estado>`, `<Estado xmlns="urn:x">`},
		"field of a namespace next to ours": {`<Estado>1</Estado>`, `<Estado>1</Estado><x:Estado xmlns:x="urn:x">2</x:Estado>`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			document := xmlsigtest.Form{}.Sign(t, peer(), edit(t, responseXML, changes...))
			_, err := reply.ReadResponse(document, peer().CA.Pool(), time.Now())
			wantKind(t, err, reply.ErrMalformed)
		})
	}
}

// The certificates in a signature are not signed, so another one must not change
// the signer, and the trusted root must not come from the document.
func TestCertificatesInAReplyDoNotReplaceTheSigner(t *testing.T) {
	t.Parallel()
	other, err := xmlsigtest.NewCA("Otra Autoridad")
	if err != nil {
		t.Fatal(err)
	}
	forged := xmlsigtest.Must(t, xmlsigtest.Options{CA: other, Subject: "Otra Persona", SerialNumber: "IDCDO-00100000000"}) // the same key
	signed := string(xmlsigtest.Form{}.Sign(t, peer(), receiptXML))
	with := func(c *x509.Certificate) []byte {
		return []byte(edit(t, signed, "<X509Certificate>", "<X509Certificate>"+base64.StdEncoding.EncodeToString(c.Raw)+"</X509Certificate><X509Certificate>"))
	}
	_, err = reply.ReadAcknowledgement(with(forged.Certificate), peer().CA.Pool(), time.Now())
	wantKind(t, err, reply.ErrSignature)
	a, err := reply.ReadAcknowledgement(with(other.Certificate), peer().CA.Pool(), time.Now())
	if err != nil || a.Signer != "00112345678" {
		t.Errorf("acknowledgement %+v, %v", a, err)
	}
	_, err = reply.ReadAcknowledgement(with(peer().CA.Certificate), other.Pool(), time.Now())
	wantKind(t, err, reply.ErrUntrusted)
}
