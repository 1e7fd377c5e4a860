package overview

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/metric"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// ServiceFigures is what this node has seen of a service of the authority since it
// started.
type ServiceFigures struct {
	Service     string
	Calls       uint64
	Failures    uint64 // calls without an answer, or with one that says that the service failed
	Median, P99 time.Duration
}

// ServicesOf reads the figures of the authority's services from the metrics of this
// node, by name. Other nodes have figures of their own.
func ServicesOf(metrics prometheus.Gatherer) ([]ServiceFigures, error) {
	families, err := metrics.Gather()
	if err != nil {
		return nil, err
	}
	sums := map[string]*serviceSum{}
	for _, family := range families {
		if family.GetName() != metric.ExchangeTime {
			continue
		}
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			sum := sums[labels["service"]]
			if sum == nil {
				sum = &serviceSum{below: map[float64]uint64{}}
				sums[labels["service"]] = sum
			}
			h := m.GetHistogram()
			sum.calls += h.GetSampleCount()
			switch labels["outcome"] {
			case "server_error", "not_sent", "lost":
				sum.failures += h.GetSampleCount()
			}
			for _, b := range h.GetBucket() {
				sum.below[b.GetUpperBound()] += b.GetCumulativeCount()
			}
		}
	}
	all := make([]ServiceFigures, 0, len(sums))
	for name, sum := range sums {
		all = append(all, ServiceFigures{name, sum.calls, sum.failures, sum.quantile(0.5), sum.quantile(0.99)})
	}
	slices.SortFunc(all, func(a, b ServiceFigures) int { return strings.Compare(a.Service, b.Service) })
	return all, nil
}

// serviceSum adds up the histograms of the outcomes of a service.
type serviceSum struct {
	calls, failures uint64
	below           map[float64]uint64 // calls up to a number of seconds
}

// quantile returns the time within which a share of the calls ended.
func (s *serviceSum) quantile(q float64) time.Duration {
	limits := make([]float64, 0, len(s.below))
	for limit := range s.below {
		if !math.IsInf(limit, 1) {
			limits = append(limits, limit)
		}
	}
	slices.Sort(limits)
	rank, lower, below := q*float64(s.calls), 0.0, 0.0
	for _, limit := range limits {
		n := float64(s.below[limit])
		if n >= rank && n > below {
			return time.Duration((lower + (limit-lower)*max(rank-below, 0)/(n-below)) * float64(time.Second))
		}
		lower, below = limit, n
	}
	return time.Duration(lower * float64(time.Second))
}

// Fence is a number range that gives no numbers until it is released.
type Fence struct {
	store.NumberRange
	RNC string
	// Answered is for how many of its numbers the release has the authority's answer. The
	// release goes on until it knows that no later number was used.
	Answered int
}

// Fences lists the fenced number ranges, with the progress of their release.
func (r *Reporter) Fences(ctx context.Context, within store.Within) (all []Fence, err error) {
	ranges, err := r.o.Store.NumberRanges(ctx)
	if err != nil {
		return nil, err
	}
	for _, n := range ranges {
		if n.FencedAt.IsZero() || n.Environment != within.Environment || !within.Allows(n.TaxpayerID) {
			continue
		}
		taxpayer, err := r.o.Store.Taxpayer(ctx, n.TaxpayerID)
		if err != nil {
			return nil, err
		}
		answered, err := r.answered(ctx, n, taxpayer.RNC)
		if err != nil {
			return nil, err
		}
		all = append(all, Fence{n, taxpayer.RNC, answered})
	}
	return all, nil
}

func (r *Reporter) answered(ctx context.Context, n store.NumberRange, rnc string) (int, error) {
	if n.Left() <= 0 {
		return 0, nil
	}
	first, err := fiscal.NewENCF(n.Type, n.Next)
	if err != nil {
		return 0, err
	}
	last, err := fiscal.NewENCF(n.Type, n.Last)
	if err != nil {
		return 0, err
	}
	answers, err := r.o.Store.AbandonedNumbers(ctx, n.Scope, rnc, first.String(), last.String())
	return len(answers), err
}
