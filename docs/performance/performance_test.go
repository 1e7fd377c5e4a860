package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/fiscalhub/fiscalhub/bench/report"
)

func TestThePageIsThatOfTheRun(t *testing.T) {
	t.Parallel()
	r, err := report.Read("run.json")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][]byte{"../performance.md": r.Page(), "../pictures/performance.svg": r.Chart()} {
		shown, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(shown, want) {
			t.Errorf("%s is stale: run go run ./docs/performance", path)
		}
	}
}
