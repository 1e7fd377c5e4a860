package monitor

import (
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/metric"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// sender sends one value.
type sender func(name string, value float64, labels ...string)

// since returns the time between a moment and now in seconds, and 0 for no moment.
func since(at, now time.Time) float64 {
	if at.IsZero() || at.After(now) {
		return 0
	}
	return now.Sub(at).Seconds()
}

// earlier returns the earlier of two moments; the zero time is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

// sendJobs sends the figures of jobs. In a live environment every stage has figures.
func (f figures) sendJobs(send sender, live bool, now time.Time) {
	type key struct{ stage, state string }
	counts, oldest := map[key]int64{}, map[key]time.Time{}
	if live {
		for _, stage := range metric.Stages() {
			for _, state := range metric.JobStates() {
				counts[key{stage, state}] = 0
			}
		}
	}
	due := map[store.Queue]time.Time{}
	for _, j := range f.jobs {
		k := key{j.Stage, j.State}
		counts[k] += j.Jobs
		oldest[k] = earlier(oldest[k], j.Created)
		if j.State == "waiting" {
			due[j.Queue] = earlier(due[j.Queue], j.DueAt)
		}
	}
	for k, n := range counts {
		send(metric.Jobs, float64(n), k.stage, k.state)
		send(metric.JobAge, since(oldest[k], now), k.stage, k.state)
	}
	for _, queue := range store.Queues() {
		send(metric.JobLag, since(due[queue], now), string(queue))
	}
}

func (f figures) sendWebhooks(send sender, now time.Time) {
	waiting := map[string]store.DeliveryFigure{}
	for _, d := range f.deliveries {
		waiting[d.Status] = d
	}
	for _, status := range metric.EndpointStatuses() {
		send(metric.Deliveries, float64(waiting[status].Deliveries), status)
		send(metric.DeliveryAge, since(waiting[status].Created, now), status)
		send(metric.Endpoints, float64(f.endpoints[status]), status)
	}
}

// sendPreparation sends what taxpayers need to issue. Without a certificate, or a range of
// a type, there is no figure of it.
func (f figures) sendPreparation(send sender, now time.Time) {
	var first time.Time
	for _, end := range f.ends {
		first = earlier(first, end)
	}
	if !first.IsZero() {
		send(metric.CertificateRemaining, first.Sub(now).Seconds())
	}
	const day = 24 * time.Hour
	for _, within := range []struct {
		label string
		time  time.Duration
	}{{"0d", 0}, {"7d", 7 * day}, {"30d", 30 * day}} {
		n := 0
		for _, end := range f.ends {
			if end.Sub(now) <= within.time {
				n++
			}
		}
		send(metric.TaxpayersExpiring, float64(n), within.label)
	}
	least, low, fenced := map[fiscal.Type]int64{}, map[fiscal.Type]int{}, int64(0)
	for _, n := range f.numbers {
		if left, ok := least[n.Type]; !ok || n.Left < left {
			least[n.Type] = n.Left
		}
		if n.Left < fiscal.LowNumbers {
			low[n.Type]++
		}
		fenced += n.Fenced
	}
	for kind, left := range least {
		send(metric.NumbersLeft, float64(left), string(kind))
	}
	for _, kind := range []fiscal.Type{fiscal.FiscalCredit, fiscal.Consumer} {
		send(metric.TaxpayersLow, float64(low[kind]), string(kind))
	}
	send(metric.FencedRanges, float64(fenced))
}
