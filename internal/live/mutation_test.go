package live_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A mutation removes one guard. A test must fail then.
type mutation struct {
	name  string
	edits []edit
}

type edit struct{ file, before, after string }

func mutations() []mutation {
	return []mutation{
		{"the attempt is recorded after it was sent", []edit{
			{"submit.go", "	if err := w.Hold(ctx, rows); err != nil {\n		return pipeline.Result{}, err\n	}\n", ""},
			{"submit.go", "	now := p.now()\n	switch {\n	case err == nil:\n", `	if err := w.Hold(ctx, rows); err != nil {
		return pipeline.Result{}, err
	}
	now := p.now()
	switch {
	case err == nil:
`},
		}},
		{"the witness is not written", []edit{{"submit.go", "return p.fence.BeforeSend(ctx, issued) }", "return nil }"}}},
		{"a number is shown before the witness knows it", []edit{{"submit.go", "return p.fence.BeforeShow(ctx, issued) }", "return nil }"}}},
		{"a number is shown with its document", []edit{{"../store/issued.go", "statements = append(statements, numberJob(one.Job, stage, one.ENCF, until), s.d.issue(one.Issued))",
			"statements = append(statements, numberJob(one.Job, stage, one.ENCF, until), s.d.issue(one.Issued))\n\t\tdefer func() { _ = s.Commit(ctx, new(Batch).ShowNumber(one.Issued)) }()"}}},
		{"documents are sent in any order", []edit{{"turn.go", "		if len(working) == 0 {", "		if true {"}, {"turn.go", "return nil, p.letFirst(ctx, issued.Scope, lower, one, now)", "_ = p.letFirst"}}},
		{"an attempt without an answer is sent again without asking", []edit{{"submit.go", "if a.ClosedAt.IsZero() {", "if false {"}}},
		{"one absence is proof enough", []edit{{"reconcile.go", "resend = p.provenAbsent(w.Evidence, p.now())", "resend = true"}}},
		{"altered bytes are sent", []edit{{"submit.go", `if reason := alteredBytes(issued, attempts); reason != "" {`, `if reason := alteredBytes(issued, attempts); reason == "never" {`}}},
		{"the number is taken before the bytes are stored", []edit{
			{"numbering.go", `	err = p.effect("issuing", func() error {` + "\n", `	err = p.effect("taking", func() error {
		return p.store.Update(ctx, func(tx *store.Tx) error { return tx.TakeNumbers(ctx, numbers, int64(len(signed))) })
	})
	if err != nil {
		return err
	}
	err = p.effect("issuing", func() error {
`},
			{"../store/number_range.go", "func takeNumbers(", `func (tx *Tx) TakeNumbers(ctx context.Context, n NumberRange, count int64) error {
	return tx.writeOne(ctx, "take numbers", ErrNumbersTaken, takeNumbers(n, count))
}

func takeNumbers(`},
			{"../store/issued.go", "takeNumbers(numbers, int64(len(all)))", "do(`UPDATE number_ranges SET next_number = next_number WHERE id = $1`, numbers.ID)"},
		}},
		{"a lost lease does not matter", []edit{{"../store/batch.go", "if rows[i] == 0 && w.idle != nil {", "if rows[i] == 0 && w.idle == ErrInvoiceChanged {"}}},
		{"a late answer is dropped", []edit{{"../pipeline/runner.go", "errors.Is(err, store.ErrLeaseLost) && r.Move == nil", "errors.Is(err, store.ErrLeaseLost) && r.Move != nil"}}},
		{"look-ups that find nothing end a doubt", []edit{
			{"../evidence/doubt.go", "	case Operator:\n", "	case Absent:\n		return everyAttempt\n	case Operator:\n"}, {"../evidence/doubt.go", "	case Absent, Lost,", "	case Lost,"},
		}},
		{"a duplicate is a rejection like any other", []edit{{"../evidence/tally.go", "case i.duplicate():", "case false:"}}},
	}
}

// TestMutations shows that the tests see each guard: without it one of them fails. With
// FISCALHUB_MUTATIONS=1, as in make soak, it removes the guards one after the other, which
// takes minutes: for each guard the compiler translates the packages again. Every run
// checks that the guards are where the mutations look for them.
func TestMutations(t *testing.T) {
	remove := os.Getenv("FISCALHUB_MUTATIONS") == "1"
	if os.Getenv("FISCALHUB_MUTATIONS") == "no" {
		t.Skip("this is a mutated run")
	}
	for _, m := range mutations() {
		mutated := map[string]string{}
		for _, e := range m.edits {
			text, ok := mutated[e.file]
			if !ok {
				content, err := os.ReadFile(e.file)
				if err != nil {
					t.Fatal(err)
				}
				text = string(content)
			}
			if n := strings.Count(text, e.before); n != 1 {
				t.Errorf("%s: %s has it %d times, want once: %s", m.name, e.file, n, e.before)
			}
			mutated[e.file] = strings.Replace(text, e.before, e.after, 1)
		}
		if !remove {
			continue
		}
		t.Run(m.name, func(t *testing.T) { // one after the other: each takes the whole machine
			failed := runMutated(t, mutated)
			if len(failed) == 0 {
				t.Error("no test has seen it")
			}
			t.Logf("seen by %q", failed)
		})
	}
}

// failure is the name of a test that failed, or the first thing that one said.
var failure = regexp.MustCompile(`(?m)^--- FAIL: (\w+)|_test\.go:\d+: (.{1,100})`)

// runMutated runs the tests on other sources and returns those that fail, and
// the first thing that each of them says.
func runMutated(t *testing.T, sources map[string]string) []string {
	t.Helper()
	dir := t.TempDir()
	replace := map[string]string{}
	for file, text := range sources {
		original, err := filepath.Abs(file)
		if err != nil {
			t.Fatal(err)
		}
		replace[original] = filepath.Join(dir, filepath.Base(file))
		if err := os.WriteFile(replace[original], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-overlay", list, "-count=1", "-timeout=5m",
		"-run=Fold|Crash|Scenarios|Altered|Lease|Printed|Hidden|InTheOrder", "-skip=/postgres|//postgres", ".", "../evidence", "../fence", "../pipeline")
	cmd.Env = append(os.Environ(), "FISCALHUB_MUTATIONS=no")
	out, err := cmd.CombinedOutput()
	failed := failure.FindAllStringSubmatch(string(out), -1)
	if err != nil && len(failed) == 0 {
		t.Fatalf("the tests did not run: %v\n%s", err, out)
	}
	var names []string
	for i, f := range failed {
		if f[1] != "" || i > 0 && failed[i-1][1] != "" {
			names = append(names, f[1]+f[2])
		}
	}
	return names
}
