package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestTheDashboardsAreCurrent(t *testing.T) {
	t.Parallel()
	all, err := files()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range all {
		got, err := os.ReadFile(filepath.Join("dashboards", name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is stale: run go run ./deploy/grafana deploy/grafana/dashboards (%v)", name, err)
		}
	}
	found, err := filepath.Glob("dashboards/*.json")
	if err != nil || len(found) != len(all) {
		t.Errorf("the folder has %d dashboards, and the program writes %d (%v)", len(found), len(all), err)
	}
}
