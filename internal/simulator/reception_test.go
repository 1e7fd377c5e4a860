package simulator_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
)

func TestRejectionMayLeaveTheNumberReusable(t *testing.T) {
	t.Parallel()
	e := newEnv(t).login()
	// A rejection that leaves the number reusable, and then the corrected document.
	e.send(encf31(1), e.sign(invoice, encf31(1), "31-12-2027", "31-12-2028"))
	if v := e.verdict(e.send(encf31(1), e.sign(invoice, encf31(1)))); v["codigo"] != "1" {
		t.Errorf("a reusable number: %v", v)
	}
	e.noViolations()
	// A rejection that uses the number.
	e.send(encf31(2), e.sign(invoice, encf31(2), "<IndicadorMontoGravado>0</IndicadorMontoGravado>", ""))
	if v := e.verdict(e.send(encf31(2), e.sign(invoice, encf31(2)))); v["codigo"] != "2" {
		t.Errorf("a used number: %v", v)
	}
}

func TestDuplicateModes(t *testing.T) {
	t.Parallel()
	for mode, want := range map[simulator.DuplicateMode]struct {
		same bool
		code string
	}{simulator.DuplicateReject: {false, "2"}, simulator.DuplicateSameVerdict: {false, "1"}, simulator.DuplicateSameTrackID: {true, "1"}} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, func(o *simulator.Options) { o.Config.DuplicateMode = mode }).login()
			raw := e.sign(invoice, encf31(1))
			first := e.send(encf31(1), raw)
			e.verdict(first)
			second := e.send(encf31(1), raw)
			if v := e.verdict(second); (first == second) != want.same || v["codigo"] != want.code {
				t.Errorf("%s then %s: %v", first, second, v)
			}
			if v := e.verdict(first); v["codigo"] != "1" {
				t.Errorf("the first: %v", v)
			}
		})
	}
}

func TestDocumentIndentedAfterSigningIsAccepted(t *testing.T) {
	t.Parallel()
	e := newEnv(t).login()
	raw := regexp.MustCompile(`><([^/])`).ReplaceAllString(string(e.sign(invoice, encf31(1))), ">\n<$1")
	if v := e.verdict(e.send(encf31(1), []byte(raw))); v["codigo"] != "1" {
		t.Errorf("%v", v)
	}
}

func TestTestecfRemovesDocumentsAfter60Days(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	amb := func(path string) string { return strings.Replace(path, "/ecf/", "/TestECF/", 1) }
	login := func() {
		a := e.authenticate(amb(seedURL), amb(tokenURL), e.id)
		e.token, _ = a.json(t)["token"].(string)
	}
	login()
	id, _ := e.upload(amb(reception), issuer+encf31(1)+".xml", e.sign(invoice, encf31(1))).json(t)["trackId"].(string)
	if v := e.get(amb(result), "trackid", id).json(t); v["codigo"] != "1" {
		t.Errorf("at first: %v", v)
	}
	e.clock.advance(90 * 24 * time.Hour)
	login()
	if v := e.get(amb(result), "trackid", id).json(t); v["codigo"] != "0" {
		t.Errorf("after 90 days: %v", v)
	}
}
