// Package metric is the catalogue of the figures that the service shows to Prometheus:
// their names, types, labels and meaning, and what to do when one is bad. Other packages
// make their metrics from it, and docs/metrics.md is written from it. So no figure exists
// without a description.
package metric

import (
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// Type is the Prometheus type of a metric.
type Type string

// The types.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram"
)

// Label is a label of a metric. Its values are few: never the text of a client, and never
// the id of a taxpayer.
type Label struct {
	Name   string
	Values []string // the closed list of its values; nil when the code decides them
	Of     string   // what the values are, when Values is nil
}

// Definition describes one metric.
type Definition struct {
	Group   Group
	Name    string
	Type    Type
	Labels  []Label
	Help    string // what it measures
	Bad     string // what a bad value is, and what to do then
	Buckets []float64
	// LiveOnly: the sandbox does not have it.
	LiveOnly bool
}

// Group is a section of the page.
type Group string

// The groups, in the order of the page.
const (
	Documents   Group = "Documents"
	Authority   Group = "Tax authority and buyers"
	Webhooks    Group = "Webhooks"
	Preparation Group = "What taxpayers need to issue"
	Database    Group = "Database"
	Requests    Group = "Requests"
	Program     Group = "Program"
)

// Groups returns the groups in the order of the page.
func Groups() []Group {
	return []Group{Documents, Authority, Webhooks, Preparation, Database, Requests, Program}
}

// find returns the definition with a name. A name that is not in the catalogue is a bug.
func find(name string, t Type) Definition {
	all := All()
	i := slices.IndexFunc(all, func(d Definition) bool { return d.Name == name })
	if i < 0 || all[i].Type != t {
		panic(fmt.Sprintf("metric: the catalogue has no %s %s", t, name))
	}
	return all[i]
}

func (d Definition) labels() []string {
	names := make([]string, len(d.Labels))
	for i, l := range d.Labels {
		names[i] = l.Name
	}
	return names
}

// combinations returns all combinations of label values; none when a label has no closed
// list of values.
func (d Definition) combinations() [][]string {
	all := [][]string{nil}
	for _, l := range d.Labels {
		var longer [][]string
		for _, values := range all {
			for _, v := range l.Values {
				longer = append(longer, append(slices.Clone(values), v))
			}
		}
		all = longer
	}
	return all
}

// NewCounter returns a counter without labels.
func NewCounter(name string) prometheus.Counter {
	d := find(name, Counter)
	return prometheus.NewCounter(prometheus.CounterOpts{Name: d.Name, Help: d.Help})
}

// NewCounterFunc returns a counter with the value of a function.
func NewCounterFunc(name string, value func() float64) prometheus.CounterFunc {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: find(name, Counter).Help}, value)
}

// NewCounters returns a counter with labels. When the values of all labels are known, every
// series exists from the start, so that an alarm can watch it.
func NewCounters(name string) *prometheus.CounterVec {
	d := find(name, Counter)
	made := prometheus.NewCounterVec(prometheus.CounterOpts{Name: d.Name, Help: d.Help}, d.labels())
	for _, values := range d.combinations() {
		made.WithLabelValues(values...)
	}
	return made
}

// NewGauge returns a gauge without labels.
func NewGauge(name string) prometheus.Gauge {
	d := find(name, Gauge)
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: d.Name, Help: d.Help})
}

// NewGauges returns a gauge with labels.
func NewGauges(name string) *prometheus.GaugeVec {
	d := find(name, Gauge)
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: d.Name, Help: d.Help}, d.labels())
}

// NewHistograms returns a histogram with labels. As with NewCounters, every series whose
// labels are known exists from the start.
func NewHistograms(name string) *prometheus.HistogramVec {
	d := find(name, Histogram)
	made := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: d.Name, Help: d.Help, Buckets: d.Buckets}, d.labels())
	for _, values := range d.combinations() {
		made.WithLabelValues(values...)
	}
	return made
}

// NewDesc returns the description of a gauge whose values a collector reads at each scrape.
func NewDesc(name string) *prometheus.Desc {
	d := find(name, Gauge)
	return prometheus.NewDesc(d.Name, d.Help, d.labels(), nil)
}
