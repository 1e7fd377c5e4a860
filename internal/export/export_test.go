package export

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

// An export has every document of the span, its tables, and is as Verify wants it.
func TestAnExportIsCompleteAndValid(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		e := newEnv(t, address)
		e.add(e.day(0), fiscal.Accepted, "Ana")
		e.add(e.day(0), fiscal.Rejected, "Benito")
		e.add(e.day(1), fiscal.Queued, "Carmen")
		e.add(e.day(2), fiscal.Accepted, "After the span")
		e.add(e.day(-1), fiscal.Accepted, "Before the span")
		o := e.options()
		o.PDF = true
		m := e.write(o)
		files := e.files(e.path())
		for _, name := range []string{"xml/199000013E320000000001.xml", "xml/199000013E320000000002.xml", "pdf/199000013E320000000001.pdf", "documents.csv", "summary.csv", "manifest.json"} {
			if files[name] == "" {
				t.Errorf("there is no %s", name)
			}
		}
		if len(files) != 6 || m.Documents != 3 {
			t.Errorf("%d files and %d documents, want 6 and 3", len(files), m.Documents)
		}
		if summary := files["summary.csv"]; !strings.Contains(summary, e.day(0).String()+",32,aceptado,DOP,18,1,100.00,18.00") || !strings.Contains(summary, "pendiente") || !strings.Contains(summary, "no_valido") {
			t.Errorf("summary.csv is %s", summary)
		}
		r := e.verify(e.path())
		if len(r.Problems) > 0 || r.Signatures != 2 || r.Manifest.RNC != issuerRNC {
			t.Errorf("Verify reports %+v", r)
		}
		info, err := os.Stat(e.path())
		e.must(err)
		if info.Mode().Perm() != 0o600 {
			t.Errorf("the mode is %v", info.Mode())
		}
		if _, err := os.Stat(e.path() + partialEnding); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the folder of the parts: %v", err)
		}
		if _, err := Write(t.Context(), e.path(), o); !errors.Is(err, fs.ErrExist) {
			t.Errorf("a second export into the same file: %v", err)
		}
	})
}

// An export that is interrupted goes on where it stopped, and documents that were created
// meanwhile do not get into it.
// A document of an earlier release keeps its page, and counts for the rate that was signed.
func TestDocumentsOfAnEarlierReleaseAreExportedAsTheyWereSigned(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		exempt := `"taxes":[{"code":"ITBIS","label":"Exento","rate_percent":"0"}]`
		tests := []struct {
			taxes   string
			percent int
			decode  func(*strictjson.Document) fiscal.Request
			want    string
		}{
			{`"taxes":[{"code":"OTRO","label":"x","rate_percent":"18"}]`, 18, fiscal.DecodeRegistered, "18,1,100.00,18.00"},
			{`"taxes":[{"code":"N/A","label":"x","rate_percent":"0"}]`, 0, fiscal.DecodeRegistered, "0,1,100.00,0.00"},
			{exempt, 0, fiscal.DecodeRegistered, "exento,1,100.00,0.00"},
			{exempt, 0, fiscal.DecodeRequest, "0,1,100.00,0.00"},
		}
		e := newEnv(t, address)
		for i, tt := range tests {
			e.addTaxed(e.day(i), fiscal.Accepted, "Ana", tt.taxes, tt.percent, tt.decode)
		}
		o := e.options()
		o.PDF, o.To = true, e.day(len(tests))
		e.write(o)
		files := e.files(e.path())
		for i, tt := range tests {
			if summary := files["summary.csv"]; !strings.Contains(summary, e.day(i).String()+",32,aceptado,DOP,"+tt.want) {
				t.Errorf("%s: summary.csv is %s", tt.taxes, summary)
			}
			if files[fmt.Sprintf("pdf/199000013E32%010d.pdf", i+1)] == "" {
				t.Errorf("%s: no page", tt.taxes)
			}
		}
	})
}

func TestAnInterruptedExportGoesOn(t *testing.T) {
	t.Parallel()
	e := newEnv(t, storetest.Address(t, "sqlite"))
	for range 7 {
		e.add(e.day(0), fiscal.Accepted, "Ana")
	}
	o := e.options()
	ctx, cancel := context.WithCancel(t.Context())
	o.Progress = func(done, _ int64) {
		if done == 5 {
			cancel()
		}
	}
	if _, err := Write(ctx, e.path(), o); !errors.Is(err, context.Canceled) {
		t.Fatalf("the interrupted export: %v", err)
	}
	if _, err := os.Stat(e.path()); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("an interrupted export has a file: %v", err)
	}
	other := e.options()
	other.PDF = true
	if _, err := Write(t.Context(), e.path(), other); !errors.Is(err, ErrOtherExport) {
		t.Errorf("an export with other options: %v", err)
	}
	e.clock.Advance(1e9)
	e.add(e.day(0), fiscal.Accepted, "Later")
	var first int64 = -1
	o.Progress = func(done, total int64) {
		if first < 0 {
			first = done
		}
		if total != 7 || done > total {
			t.Errorf("the progress is %d of %d", done, total)
		}
	}
	m := e.write(o)
	if first != 4 || m.Documents != 7 {
		t.Errorf("it went on at %d and has %d documents, want 4 and 7", first, m.Documents)
	}
	if r := e.verify(e.path()); len(r.Problems) > 0 || r.Signatures != 7 {
		t.Errorf("Verify reports %+v", r)
	}
}

// Verify finds every changed, added and removed byte.
func TestVerifyFindsEveryChange(t *testing.T) {
	t.Parallel()
	e := newEnv(t, storetest.Address(t, "sqlite"))
	e.add(e.day(0), fiscal.Accepted, "Ana")
	e.add(e.day(0), fiscal.Rejected, "Benito")
	e.write(e.options())
	whole, err := os.ReadFile(e.path())
	e.must(err)
	changed := e.path() + ".changed"
	found := func(content []byte) bool {
		e.must(os.WriteFile(changed, content, 0o600))
		r, err := Verify(t.Context(), changed, nil)
		return err != nil || len(r.Problems) > 0
	}
	if found(whole) {
		t.Fatal("an unchanged export has problems")
	}
	rapid.Check(t, func(rt *rapid.T) {
		at := rapid.IntRange(0, len(whole)-1).Draw(rt, "position")
		content := append([]byte{}, whole...)
		content[at] ^= byte(rapid.IntRange(1, 255).Draw(rt, "bits"))
		if !found(content) {
			rt.Errorf("a changed byte at %d of %d was not found", at, len(whole))
		}
	})
	for name, content := range map[string][]byte{
		"a byte at the end": append(append([]byte{}, whole...), 'x'), "a byte less": whole[:len(whole)-1], "empty": {}, "a byte before": append([]byte{'x'}, whole...),
	} {
		if !found(content) {
			t.Errorf("%s was not found", name)
		}
	}
}

// No cell of the tables begins like a formula, whichever separator a spreadsheet takes.
func TestTextsAreNoFormulas(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		got := text(rapid.StringOfN(rapid.RuneFrom([]rune("=+-@;,|\t\r\nab 1ñ＝")), 0, 12, -1).Draw(rt, "text"))
		for _, cell := range strings.FieldsFunc(got, func(r rune) bool { return strings.ContainsRune(";,|\t\r\n", r) }) {
			if strings.ContainsAny(cell[:1], "=+-@") || strings.HasPrefix(cell, "＝") {
				rt.Errorf("%q has the cell %q", got, cell)
			}
		}
	})
	if got := text("Peña & Hijos, SRL"); got != "Peña & Hijos, SRL" {
		t.Errorf("a plain name became %s", got)
	}
	e := newEnv(t, storetest.Address(t, "sqlite"))
	e.add(e.day(0), fiscal.Queued, `=HYPERLINK("http://x";"y")`)
	e.write(e.options())
	rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(e.files(e.path())["documents.csv"], "\ufeff"))).ReadAll()
	e.must(err)
	if len(rows) != 2 || rows[1][6] != `'=HYPERLINK("http://x";"y")` {
		t.Errorf("the rows are %q", rows)
	}
}
