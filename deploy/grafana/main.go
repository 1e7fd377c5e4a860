// Command grafana writes the dashboards for Grafana into a folder:
//
//	go run ./deploy/grafana deploy/grafana/dashboards
//
// The panels are in dashboards.go. A test fails when the written files are stale.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "grafana:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: grafana DIR")
	}
	all, err := files()
	if err != nil {
		return err
	}
	for name, text := range all {
		if err := os.WriteFile(filepath.Join(args[0], name), text, 0o644); err != nil { //nolint:gosec // dashboards are for everyone
			return err
		}
	}
	return nil
}

// files returns the content of each file by its name.
func files() (map[string][]byte, error) {
	all := map[string][]byte{}
	for _, d := range dashboards() {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(d.model()); err != nil {
			return nil, err
		}
		all[d.id+".json"] = b.Bytes()
	}
	return all, nil
}

// dashboard is a page of Grafana.
type dashboard struct {
	id, title, about string
	rows             []row
}

// row is a heading with panels below it.
type row struct {
	title  string
	panels []panel
}

// panel is a chart, or a single figure.
type panel struct {
	title, about string
	unit         string // a unit of Grafana
	single       bool   // shows the last value as a figure
	warn         float64
	queries      []query
}

// query is a question to Prometheus, and the text of its lines.
type query struct{ expr, legend string }

const (
	panelHeight = 8
	width       = 24
)

// model returns the dashboard in the format of Grafana.
func (d dashboard) model() map[string]any {
	var panels []any
	y, id := 0, 0
	for _, r := range d.rows {
		id++
		panels = append(panels, map[string]any{"id": id, "type": "row", "title": r.title, "collapsed": false, "panels": []any{}, "gridPos": position(0, y, width, 1)})
		y++
		each := width / min(len(r.panels), 4)
		for i, p := range r.panels {
			id++
			panels = append(panels, p.model(id, position(i%4*each, y+i/4*panelHeight, each, panelHeight)))
		}
		y += (len(r.panels) + 3) / 4 * panelHeight
	}
	return map[string]any{
		"uid": "fiscalhub-" + d.id, "title": "fiscalhub: " + d.title, "description": d.about, "tags": []string{"fiscalhub"},
		"schemaVersion": 39, "version": 1, "editable": true, "timezone": "browser", "refresh": "30s",
		"time":       map[string]string{"from": "now-6h", "to": "now"},
		"links":      []any{map[string]any{"type": "dashboards", "title": "fiscalhub", "tags": []string{"fiscalhub"}, "asDropdown": true}},
		"templating": map[string]any{"list": []any{map[string]any{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}}},
		"panels":     panels,
	}
}

func position(x, y, w, h int) map[string]int { return map[string]int{"x": x, "y": y, "w": w, "h": h} }

func (p panel) model(id int, at map[string]int) map[string]any {
	source := map[string]string{"type": "prometheus", "uid": "${datasource}"}
	var targets []any
	for i, q := range p.queries {
		targets = append(targets, map[string]any{"refId": string(rune('A' + i)), "expr": q.expr, "legendFormat": q.legend, "datasource": source, "instant": p.single})
	}
	kind, options := "timeseries", map[string]any{"legend": map[string]any{"displayMode": "list", "placement": "bottom"}, "tooltip": map[string]any{"mode": "multi"}}
	if p.single {
		kind, options = "stat", map[string]any{"reduceOptions": map[string]any{"calcs": []string{"lastNotNull"}}, "colorMode": "value"}
	}
	steps := []any{map[string]any{"color": "green", "value": nil}}
	if p.warn > 0 {
		steps = append(steps, map[string]any{"color": "red", "value": p.warn})
	}
	return map[string]any{
		"id": id, "type": kind, "title": p.title, "description": p.about, "gridPos": at, "datasource": source, "targets": targets, "options": options,
		"fieldConfig": map[string]any{"defaults": map[string]any{"unit": p.unit, "min": 0, "thresholds": map[string]any{"mode": "absolute", "steps": steps}}, "overrides": []any{}},
	}
}
