package simulator_test

import (
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
)

func TestConfigIsACopy(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	c := e.Config()
	c.Latency.Max = simulator.Duration(time.Hour)
	if got := e.Config().Latency.Max; got != 0 {
		t.Errorf("changing the copy changed the configuration: %s", time.Duration(got))
	}
	if err := e.Configure(func(c *simulator.Config) { c.Profile = "moon" }); err == nil || e.Config().Profile != "" {
		t.Errorf("%v, profile %q", err, e.Config().Profile)
	}
	must(t, e.Configure(func(c *simulator.Config) { c.Strict = true }))
	must(t, e.SetProfile("certification-strict"))
	must(t, e.SetProfile("happy"))
	if e.Config().Strict {
		t.Error("Strict stays set after the profile has changed")
	}
}

func TestDefaultValidationDelays(t *testing.T) {
	t.Parallel()
	e := newEnv(t, func(o *simulator.Options) { o.Config.ValidationDelay = nil }).login()
	quick := 0
	for n := 1; n <= 100; n++ {
		e.send(encf31(n), e.sign(invoice, encf31(n)))
	}
	for _, d := range e.Documents(simulator.Filter{}) {
		took := d.Due.Sub(d.Received)
		if took < 150*time.Millisecond || took > 5*time.Minute {
			t.Errorf("%s", took)
		}
		if took <= 400*time.Millisecond {
			quick++
		}
	}
	if quick < 65 || quick > 92 {
		t.Errorf("%d of 100 within 400 ms", quick)
	}
}
