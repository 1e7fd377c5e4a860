package dgii

import (
	"testing"
	"time"
)

func TestHostsAreChecked(t *testing.T) {
	t.Parallel()
	if _, err := SimulatorHosts("http://127.0.0.1:9090/", "certecf"); err != nil {
		t.Error(err)
	}
	for _, tt := range [][2]string{{"ftp://x", "ecf"}, {"http://", "ecf"}, {"http://x", "production"}, {"http://u@x", "ecf"}, {"x", "ecf"}} {
		if h, err := SimulatorHosts(tt[0], tt[1]); err == nil {
			t.Errorf("%v: %+v", tt, h)
		}
	}
	if _, err := New(Options{Hosts: ProductionHosts("ecf")}); err == nil {
		t.Error("New accepted options without a clock")
	}
	c := newClient(t, Options{Hosts: ProductionHosts("ecf"), Now: time.Now})
	if want := "https://fc.dgii.gov.do/ecf/recepcionfc/api/recepcion/ecf"; c.rfce.base != want {
		t.Errorf("%s, want %s", c.rfce.base, want)
	}
}
