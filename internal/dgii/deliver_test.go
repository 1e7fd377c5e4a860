package dgii

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/netguard"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig/xmlsigtest"
)

const buyer = "101010101"

// receiptXML returns an acknowledgement without a signature.
func receiptXML(issuer, buyer, encf, state, more string) string {
	return fmt.Sprintf("<ARECF xmlns:xsd=\"http://www.w3.org/2001/XMLSchema\"><DetalleAcusedeRecibo><Version>1.0</Version><RNCEmisor>%s</RNCEmisor><RNCComprador>%s</RNCComprador><eNCF>%s</eNCF><Estado>%s</Estado>%s<FechaHoraAcuseRecibo>08-10-2026 10:00:00</FechaHoraAcuseRecibo></DetalleAcusedeRecibo></ARECF>", issuer, buyer, encf, state, more)
}

func signed(t *testing.T, id *xmlsig.Identity, document string) string {
	t.Helper()
	doc, err := xmlsig.Parse([]byte(document), xmlsig.SmallLimits())
	if err != nil {
		t.Fatal(err)
	}
	out, err := id.SignDocument(doc)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// canonical returns a signed document as it is kept: without the XML declaration and the
// white space that was added after signing.
func canonical(document string) string {
	_, document, _ = strings.Cut(document, "?>")
	return strings.ReplaceAll(document, "\n  ", "")
}

func TestDeliverAcceptsOnlyVerifiedAcknowledgements(t *testing.T) {
	t.Parallel()
	ca, err := xmlsigtest.NewCA("Raíz")
	if err != nil {
		t.Fatal(err)
	}
	peer := xmlsigtest.Must(t, xmlsigtest.Options{CA: ca}).Identity
	ship := shipment()
	receipt := func(state, more string) string {
		return signed(t, peer, receiptXML(ship.RNC, buyer, ship.ENCF, state, more))
	}
	good := receipt("0", "")
	stranger := xmlsigtest.Must(t, xmlsigtest.Options{}).Identity
	expired := xmlsigtest.Must(t, xmlsigtest.Options{CA: ca, NotBefore: time.Now().AddDate(-2, 0, 0), NotAfter: time.Now().AddDate(-1, 0, 0)}).Identity
	for _, tt := range []struct {
		name     string
		status   int
		body     string
		roots    *x509.CertPool
		received bool
		reason   string
		ok       bool
	}{
		{"received", 200, good, ca.Pool(), true, "", true},
		{"received, whatever the status", 500, good, ca.Pool(), true, "", true},
		{"received, with an empty reason", 200, receipt("0", "<CodigoMotivoNoRecibido></CodigoMotivoNoRecibido>"), ca.Pool(), true, "", true},
		{"not received", 200, receipt("1", "<CodigoMotivoNoRecibido>4</CodigoMotivoNoRecibido>"), ca.Pool(), false, "4", true},
		{"not received, with 400", 400, receipt("1", "<CodigoMotivoNoRecibido>2</CodigoMotivoNoRecibido>"), ca.Pool(), false, "2", true},
		{"not received, without a reason", 200, receipt("1", ""), ca.Pool(), false, "", true},
		{"indented after signing", 200, strings.ReplaceAll(good, "><RNC", ">\n  <RNC"), ca.Pool(), true, "", true},

		{"no roots", 200, good, nil, false, "", false},
		{"unsigned", 200, receiptXML(ship.RNC, buyer, ship.ENCF, "0", ""), ca.Pool(), false, "", false},
		{"changed", 200, strings.Replace(receipt("1", ""), "<Estado>1", "<Estado>0", 1), ca.Pool(), false, "", false},
		{"signed by an untrusted signer", 200, signed(t, stranger, receiptXML(ship.RNC, buyer, ship.ENCF, "0", "")), ca.Pool(), false, "", false},
		{"signed with an expired certificate", 200, signed(t, expired, receiptXML(ship.RNC, buyer, ship.ENCF, "0", "")), ca.Pool(), false, "", false},
		{"about another number", 200, signed(t, peer, receiptXML(ship.RNC, buyer, "E310000000059", "0", "")), ca.Pool(), false, "", false},
		{"about another issuer", 200, signed(t, peer, receiptXML("131256433", buyer, ship.ENCF, "0", "")), ca.Pool(), false, "", false},
		{"about another buyer", 200, signed(t, peer, receiptXML(ship.RNC, "101010102", ship.ENCF, "0", "")), ca.Pool(), false, "", false},
		{"another document", 200, strings.ReplaceAll(good, "ARECF", "ACECF"), ca.Pool(), false, "", false},
		{"another state", 200, receipt("2", ""), ca.Pool(), false, "", false},
		{"received and not received", 200, receipt("0", "<CodigoMotivoNoRecibido>3</CodigoMotivoNoRecibido>"), ca.Pool(), false, "", false},
		{"page", 200, htmlPage, ca.Pool(), false, "", false},
		{"nothing", 200, "", ca.Pool(), false, "", false},
		{"too long", 200, good + strings.Repeat(" ", maxReceiptResponse), ca.Pool(), false, "", false},
		{"down", 503, "", ca.Pool(), false, "", false},
		{"redirect", 307, "", ca.Pool(), false, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			posts := 0
			s := newEnv(t, func(w http.ResponseWriter, r *http.Request) {
				posts++
				if want := "/peer/" + buyer + "/fe/recepcion/api/ecf"; r.URL.Path != want || r.Header.Get("Authorization") != "" {
					t.Errorf("path %s, %v", r.URL.Path, r.Header)
				}
				w.Header().Set("Location", "/elsewhere")
				answer(tt.status, tt.body)(w, r)
			})
			c := s.client(t, func(o *Options) { o.Roots = tt.roots })
			got, err := c.Deliver(testContext(t), signer(t), fiscal.BuyerEndpoint{RNC: buyer, Reception: s.URL + "/peer/" + buyer + "/"}, ship)
			if (err == nil) != tt.ok || posts != 1 {
				t.Fatalf("%v, %d posts", err, posts)
			}
			if err != nil {
				wantError(t, err, fiscal.ErrUnavailable)
				return
			}
			if got.Received != tt.received || got.Reason != tt.reason || got.Signer == "" || string(got.XML) != canonical(tt.body) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// A receiver may require a token, list an authentication service that does not
// work, or require no token.
func TestDeliverSendsATokenWhenTheReceiverRequiresOne(t *testing.T) {
	t.Parallel()
	ca, err := xmlsigtest.NewCA("Raíz")
	if err != nil {
		t.Fatal(err)
	}
	peer := xmlsigtest.Must(t, xmlsigtest.Options{CA: ca}).Identity
	ship := shipment()
	receipt := signed(t, peer, receiptXML(ship.RNC, buyer, ship.ENCF, "0", ""))
	for _, tt := range []struct {
		name                 string
		works, needs, expire bool
		ok                   bool
		tokens               int
	}{
		{"needed and given", true, true, false, true, 1},
		{"needed, not given", false, true, false, false, 2},
		{"not needed, not given", false, false, false, true, 0},
		{"not needed", true, false, false, true, 0},
		{"invalid after the first delivery", true, true, true, true, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tokens, good := 0, ""
			s := newEnv(t, func(w http.ResponseWriter, r *http.Request) {
				switch path := r.URL.Path; {
				case strings.HasSuffix(path, "/fe/autenticacion/api/semilla"):
					_, _ = io.WriteString(w, "<SemillaModel><valor>"+seedValue+"</valor><fecha>x</fecha></SemillaModel>")
				case strings.HasSuffix(path, "/fe/autenticacion/api/validacioncertificado"):
					tokens++
					if !tt.works {
						answer(500, htmlPage)(w, r)
						return
					}
					good = fmt.Sprintf("secret-token-%d", tokens)
					_, _ = fmt.Fprintf(w, `{"token":%q,"expira":%q}`, good, time.Now().Add(time.Hour).Format(time.RFC3339))
				case tt.needs && (good == "" || r.Header.Get("Authorization") != "Bearer "+good):
					answer(401, "")(w, r)
				default:
					answer(200, receipt)(w, r)
				}
			})
			c := s.client(t, func(o *Options) { o.Roots = ca.Pool() })
			to := fiscal.BuyerEndpoint{RNC: buyer, Reception: s.URL + "/p", Authentication: s.URL + "/p"}
			id := signer(t)
			for range 2 {
				_, err := c.Deliver(testContext(t), id, to, ship)
				if (err == nil) != tt.ok {
					t.Errorf("%v", err)
				}
				if err != nil {
					wantError(t, err, fiscal.ErrUnavailable)
				}
				if tt.expire {
					good = "invalid"
				}
			}
			if tokens != tt.tokens {
				t.Errorf("%d tokens, want %d", tokens, tt.tokens)
			}
		})
	}
}

// The addresses in the directory come from other taxpayers and must not be trusted.
func TestDeliverCallsPublicAddressesOnly(t *testing.T) {
	t.Parallel()
	s := newEnv(t, func(http.ResponseWriter, *http.Request) { t.Error("the server was called") })
	c := s.client(t, func(o *Options) { o.AllowOrigin = "http://127.0.0.1:1" })
	for _, address := range []string{
		s.URL, strings.Replace(s.URL, "http", "https", 1), "https://10.0.0.1", "https://localhost", "http://a.example.com", "", "https://127.0.0.1:1",
	} {
		_, err := c.Deliver(testContext(t), signer(t), fiscal.BuyerEndpoint{RNC: buyer, Reception: address}, shipment())
		wantError(t, err, fiscal.ErrUnavailable)
		if !errors.Is(err, netguard.ErrAddress) {
			t.Errorf("%q: %v", address, err)
		}
	}
	// A public name that resolves to a private address fails when the client
	// connects, and the error contains no address.
	_, err := c.endpointTransport.DialContext(testContext(t), "tcp", "127.0.0.1:443")
	if !errors.Is(err, netguard.ErrAddress) || netguard.Class(err) != netguard.ClassRefused {
		t.Errorf("%v", err)
	}
}
