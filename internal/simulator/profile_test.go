package simulator_test

import (
	"net/http"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
)

func TestMagicNumbersSelectFaults(t *testing.T) {
	t.Parallel()
	e := newEnv(t, func(o *simulator.Options) { o.Config.MagicNumbers = true }).login()
	for n, want := range map[int]string{901: "2 false", 902: "2 true", 903: "4 true", 904: "3 false", 907: "0 false", 900: "1 true"} {
		v := e.verdict(e.send(encf31(n), e.sign(invoice, encf31(n))))
		used := "false"
		if v["secuenciaUtilizada"] == true {
			used = "true"
		}
		if got := v["codigo"].(string) + " " + used; got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	if a := e.upload(reception, issuer+encf31(905)+".xml", e.sign(invoice, encf31(905))); a.err == nil {
		t.Errorf("905: %d", a.status)
	}
	for _, want := range []int{503, 200} {
		if a := e.upload(reception, issuer+encf31(906)+".xml", e.sign(invoice, encf31(906))); a.status != want {
			t.Errorf("906: %d, want %d", a.status, want)
		}
	}
}

func TestProfilesSetTheirRules(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"happy", "slow-day", "flaky", "dgii-down", "certification-strict", "chaos", "moon"} {
		e := newEnv(t)
		if err := e.SetProfile(name); (err == nil) != (name != "moon") {
			t.Errorf("%s: %v", name, err)
		}
	}
	// With the profile flaky, some posts fail and most succeed.
	e := newEnv(t).login()
	must(t, e.SetProfile("flaky"))
	failed := 0
	for n := 1; n <= 100; n++ {
		a := e.upload(reception, issuer+encf31(n)+".xml", e.sign(invoice, encf31(n)))
		if a.err != nil || a.status != http.StatusOK || a.body[0] != '{' {
			failed++
		}
	}
	if failed < 5 || failed > 40 {
		t.Errorf("%d of 100 failed", failed)
	}
}
