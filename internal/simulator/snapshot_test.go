package simulator_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
)

func TestRestoreBringsBackTheSnapshot(t *testing.T) {
	t.Parallel()
	e := newEnv(t, func(o *simulator.Options) { o.Config.ValidationDelay = simulator.Fixed(time.Minute) }).login()
	e.addRule(simulator.Rule{Match: simulator.Match{ENCF: encf31(2)}, Action: simulator.Action{Fault: "F11"}})
	id := e.send(encf31(1), e.sign(invoice, encf31(1)))
	stuck := e.send(encf31(2), e.sign(invoice, encf31(2)))
	e.upload(fc, issuer+encf32(1)+".xml", e.sign(summary, encf32(1)))
	e.upload("/peer/"+buyer+"/fe/recepcion/api/ecf", issuer+encf31(1)+".xml", e.sign(invoice, encf31(1)))
	first, err := e.Snapshot()
	must(t, err)

	other := newEnv(t)
	must(t, other.Restore(first))
	second, err := other.Snapshot()
	must(t, err)
	if diff := cmp.Diff(string(first), string(second)); diff != "" {
		t.Error(diff)
	}
	// The token, the root and the documents are valid after the restore too.
	other.token = e.token
	other.Advance(time.Hour - time.Minute)
	if v := other.get(result, "trackid", id).json(t); v["codigo"] != "1" {
		t.Errorf("restored: %v", v)
	}
	if v := other.get(result, "trackid", stuck).json(t); v["codigo"] != "3" {
		t.Errorf("restored and stuck: %v", v)
	}
	other.id = e.id
	other.login()
}
