package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func sample() Report {
	return Report{
		Machine: Machine{Processor: "A & B", Cores: 2, Memory: "4 GiB", Disk: "ext4"}, Date: "2026-11-16", Command: "make bench",
		Figures: []Figure{
			{Group: "creations", Name: "creations/s <x>", Measured: "10 /s", Baseline: "20 /s", Ratio: 0.5, Goal: "≥ 0.6", About: "a | b"},
			{Group: "creations", Name: "  part", Measured: "1 ms"},
			{Group: "large", Name: "lines", Measured: "9 ms", Baseline: "1 ms", Ratio: 9, Goal: "≤ 10"},
		},
	}
}

func TestGoalsAreCompared(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		goal       string
		ratio      float64
		met, known bool
	}{
		{"≥ 0.6", 0.6, true, true}, {"≥ 0.6", 0.5, false, true}, {"≤ 2", 2, true, true}, {"< 2", 2, false, true},
		{"≤ 50 ms", 1, false, false}, {"", 1, false, false}, {"≥ 1", 0, false, false},
	} {
		if met, known := (Figure{Goal: c.goal, Ratio: c.ratio}).Met(); met != c.met || known != c.known {
			t.Errorf("%v of %q: %v, %v", c.ratio, c.goal, met, known)
		}
	}
}

func TestAReportIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.json")
	if err := sample().Write(path); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(path); err != nil || !reflect.DeepEqual(got, sample()) {
		t.Errorf("read %+v, %v", got, err)
	}
}

func TestTheChartIsWellFormedAndShowsTheGoal(t *testing.T) {
	t.Parallel()
	chart := sample().Chart()
	for d := xml.NewDecoder(bytes.NewReader(chart)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"creations/s &lt;x&gt;", "A &amp; B", "(goal ≥ 0.6)", "9.00 →"} {
		if !strings.Contains(string(chart), want) {
			t.Errorf("the chart lacks %q", want)
		}
	}
	if strings.Contains(string(chart), "part") {
		t.Error("the chart shows a part")
	}
}

func TestThePageHasTheFiguresAndTheTableTheirParts(t *testing.T) {
	t.Parallel()
	var table bytes.Buffer
	if err := Table(&table, sample().Figures); err != nil {
		t.Fatal(err)
	}
	page := string(sample().Page())
	for _, f := range sample().Figures {
		if strings.Contains(page, cell(strings.TrimSpace(f.Name))) == f.Part() || !strings.Contains(table.String(), f.Name) {
			t.Errorf("%q is missing", f.Name)
		}
		if Groups()[f.Group] == "" {
			t.Errorf("the group %s is not described", f.Group)
		}
	}
}
