package dgii

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/netguard"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig/xmlsigtest"
)

// httpClient has a transport of its own. A test server that ends closes the idle
// connections of the default transport, and then a request of another test may fail.
var httpClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// A hostilePeer is a buyer's receiver that hands out the seed of the authority as its
// own, and exchanges the signed seed for a token of the authority.
type hostilePeer struct {
	t       *testing.T
	env     *env
	demands bool   // it answers 401 to a delivery
	receipt string // what it answers otherwise

	mu     sync.Mutex
	seeds  int
	stolen string // the token that it got
}

func (p *hostilePeer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/fe/autenticacion/api/semilla"):
		p.seeds++
		p.forward(w, http.MethodGet, "semilla", r)
	case strings.HasSuffix(path, "/fe/autenticacion/api/validacioncertificado"):
		p.forward(w, http.MethodPost, "validarsemilla", r)
		if token := p.env.currentToken.Load(); token != nil {
			p.stolen = *token
		}
	case p.demands && r.Header.Get("Authorization") == "":
		answer(http.StatusUnauthorized, "")(w, r)
	default:
		answer(http.StatusOK, p.receipt)(w, r)
	}
}

// forward passes a request on to the authority, and its answer back.
func (p *hostilePeer) forward(w http.ResponseWriter, method, service string, r *http.Request) {
	request, err := http.NewRequestWithContext(r.Context(), method, p.env.URL+"/ecf-host/testecf/autenticacion/api/autenticacion/"+service, r.Body)
	if err != nil {
		p.t.Error(err)
		return
	}
	request.Header.Set("Content-Type", r.Header.Get("Content-Type"))
	res, err := httpClient.Transport.RoundTrip(request)
	if err != nil {
		p.t.Error(err)
		return
	}
	defer res.Body.Close()
	_, _ = io.Copy(w, res.Body)
}

// A peerEnv is a client, a hostile peer and what the client reports.
type peerEnv struct {
	*hostilePeer
	client   *Client
	id       *xmlsig.Identity
	log      bytes.Buffer
	outcomes []PeerOutcome
}

func newPeerEnv(t *testing.T, demands bool, change ...func(*Options)) *peerEnv {
	t.Helper()
	ca, err := xmlsigtest.NewCA("Raíz")
	if err != nil {
		t.Fatal(err)
	}
	ship := shipment()
	peer := &hostilePeer{t: t, demands: demands}
	peer.receipt = signed(t, xmlsigtest.Must(t, xmlsigtest.Options{CA: ca}).Identity, receiptXML(ship.RNC, buyer, ship.ENCF, "0", ""))
	peer.env = newEnv(t, peer.ServeHTTP)
	p := &peerEnv{hostilePeer: peer, id: signer(t)}
	p.client = peer.env.client(t, append([]func(*Options){func(o *Options) {
		o.Roots, o.Log = ca.Pool(), slog.New(slog.NewTextHandler(&p.log, nil))
		o.OnPeerAuthentication = func(outcome PeerOutcome) { p.outcomes = append(p.outcomes, outcome) }
	}}, change...)...)
	return p
}

func (p *peerEnv) to() fiscal.BuyerEndpoint {
	return fiscal.BuyerEndpoint{RNC: buyer, Reception: p.env.URL + "/p", Authentication: p.env.URL + "/p"}
}

// A receiver that accepts documents without a token gets no signature, whatever it
// lists in the directory.
func TestNoSeedIsSignedBeforeAReceiverDemandsAToken(t *testing.T) {
	t.Parallel()
	p := newPeerEnv(t, false)
	for range 2 {
		if _, err := p.client.Deliver(testContext(t), p.id, p.to(), shipment()); err != nil {
			t.Fatal(err)
		}
	}
	if p.seeds != 0 || p.stolen != "" {
		t.Errorf("the receiver handed out %d seeds and got the token %q of the authority", p.seeds, p.stolen)
	}
}

// A receiver that demands a token gets one signature, which is logged and counted. The
// seed that it hands out may be the authority's: nothing in it shows that. The next
// delivery uses the token again.
func TestASeedIsSignedOnDemandLoggedAndCounted(t *testing.T) {
	t.Parallel()
	p := newPeerEnv(t, true)
	for range 2 {
		if _, err := p.client.Deliver(testContext(t), p.id, p.to(), shipment()); err != nil {
			t.Fatal(err)
		}
	}
	if p.seeds != 1 || p.stolen == "" || !slices.Equal(p.outcomes, []PeerOutcome{PeerToken}) {
		t.Errorf("%d seeds, token %q, outcomes %q", p.seeds, p.stolen, p.outcomes)
	}
	line := p.log.String()
	for _, want := range []string{"signed its seed", "receiver=" + p.env.URL + "/p", "buyer_rnc=" + buyer, "taxpayer_rnc=" + shipment().RNC, "signatures=1"} {
		if strings.Count(line, want) != 1 {
			t.Errorf("the log has %q not once:\n%s", want, line)
		}
	}
	if strings.Contains(line, "secret-token") || strings.Contains(line, seedValue) {
		t.Errorf("the log has a secret:\n%s", line)
	}
}

func TestNoSeedIsSignedWhenPeerAuthenticationIsOff(t *testing.T) {
	t.Parallel()
	p := newPeerEnv(t, true, func(o *Options) { o.NoPeerAuthentication = true })
	_, err := p.client.Deliver(testContext(t), p.id, p.to(), shipment())
	wantError(t, err, fiscal.ErrUnavailable)
	if p.seeds != 0 || !slices.Equal(p.outcomes, []PeerOutcome{PeerNotSigned}) || !errors.Is(err, errPeerTokensOff) {
		t.Errorf("%d seeds, outcomes %q, %v", p.seeds, p.outcomes, err)
	}
}

// A token that one receiver gave one taxpayer goes to no other receiver, and serves no
// other taxpayer, even when they share the signer and the authentication service.
func TestTokensOfPeersAreKeptApart(t *testing.T) {
	t.Parallel()
	p := newPeerEnv(t, true)
	other := shipment()
	other.RNC = "131256499"
	for _, c := range []struct {
		name string
		to   fiscal.BuyerEndpoint
		ship fiscal.Shipment
	}{
		{"first", p.to(), shipment()},
		{"another taxpayer", p.to(), other},
		{"another reception", fiscal.BuyerEndpoint{RNC: buyer, Reception: p.env.URL + "/q", Authentication: p.to().Authentication}, shipment()},
		{"another buyer", fiscal.BuyerEndpoint{RNC: "101010102", Reception: p.to().Reception, Authentication: p.to().Authentication}, shipment()},
	} {
		before := p.seeds
		_, _ = p.client.Deliver(testContext(t), p.id, c.to, c.ship) // the acknowledgement is about the first
		if p.seeds != before+1 {
			t.Errorf("%s: %d seeds were signed, want 1", c.name, p.seeds-before)
		}
	}
	if log := p.log.String(); !strings.Contains(log, "signatures=4") {
		t.Errorf("the log does not count 4 signatures for the receiver:\n%s", log)
	}
}

// A receiver lists the authority as its authentication service: its token must not go
// to the receiver.
func TestAReceiverElsewhereGetsNoTokenOfTheAuthority(t *testing.T) {
	t.Parallel()
	c := newClient(t, Options{Hosts: ProductionHosts("testecf"), Now: newClock().Now})
	for auth, want := range map[string]error{
		"https://ecf.dgii.gov.do/testecf/emisorreceptor": errAuthorityHost,
		"https://FC.dgii.gov.do:443":                     errAuthorityHost,
		"https://ecf.dgii.gov.do.":                       errAuthorityHost,
		"https://ECF.dgii.GOV.do.:443/testecf":           errAuthorityHost,
		" https://ecf.dgii.gov.do ":                      errAuthorityHost,
		"https://ｅcf.dgii.gov.do":                        errAuthorityHost,
		"https://ecf。dgii。gov。do":                        errAuthorityHost,
		"https://ecf%2Edgii.gov.do":                      netguard.ErrAddress,
		"https://x@ecf.dgii.gov.do":                      netguard.ErrAddress,
		"https://ecf.dgii.gov.do?x=1":                    netguard.ErrAddress,
		"https://ecf.dgii.gov.do:8443":                   netguard.ErrAddress,
		"http://ecf.dgii.gov.do":                         netguard.ErrAddress,
		"":                                               errNoPeerService,
		"https://ecf.dgii.gov.do.example.com":            nil,
	} {
		to := fiscal.BuyerEndpoint{RNC: buyer, Reception: "https://buyer.example.com", Authentication: auth}
		if _, err := c.newPeer(signer(t), to, shipment().RNC).service(); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", auth, err, want)
		}
	}
	for _, reception := range []string{"", "https://x@ecf.dgii.gov.do", "://"} {
		to := fiscal.BuyerEndpoint{RNC: buyer, Reception: reception, Authentication: "https://ecf.dgii.gov.do"}
		if _, err := c.newPeer(signer(t), to, shipment().RNC).service(); !errors.Is(err, errAuthorityHost) {
			t.Errorf("reception %q: %v, want %v", reception, err, errAuthorityHost)
		}
	}
	emulator := "https://ecf.dgii.gov.do/testecf/emisorreceptor"
	if _, err := c.newPeer(signer(t), fiscal.BuyerEndpoint{Reception: emulator, Authentication: emulator}, shipment().RNC).service(); err != nil {
		t.Errorf("the emulator of the authority: %v", err)
	}
}
